"""The annotations that the service adds."""

from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.catalog.sets import Annotator, quote_ref

ANNOTATOR = Annotator("widget", "example.com")
SET = "example.com/entity-set"
LOCATION = "backstage.io/managed-by-location"
ORIGIN = "backstage.io/managed-by-origin-location"


@pytest.mark.spec(
    "annotations.entity-set",
    "annotations.managed-by-location",
    "annotations.managed-by-origin-location",
)
def test_the_three_annotations_carry_set_word_domain_and_reference() -> None:
    annotations: dict[str, str] = {}
    ANNOTATOR.annotate(annotations, "resource:default/master account", "cloud accounts")
    assert annotations == {
        SET: "cloud accounts",
        LOCATION: "widget-api:/api/catalog/widget-entities/entities/by-ref/"
        "resource%3Adefault%2Fmaster%20account",
        ORIGIN: "widget-api:/api/catalog/widget-entities/entities",
    }


@pytest.mark.spec("annotations.clients-values-are-overruled")
def test_a_clients_own_annotations_stay_and_those_of_the_service_are_overruled() -> None:
    annotations = {ORIGIN: "url:mine", "team/note": "kept", SET: "another", LOCATION: "url:mine"}
    ANNOTATOR.annotate(annotations, "api:default/a", "first")
    assert annotations["team/note"] == "kept"
    assert annotations[SET] == "first"
    assert not any(value == "url:mine" for value in annotations.values())


def test_annotating_again_changes_nothing_not_even_the_order() -> None:
    annotations = {"b": "1", "a": "2"}
    ANNOTATOR.annotate(annotations, "api:default/a", "first")
    before = list(annotations.items())
    ANNOTATOR.annotate(annotations, "api:default/a", "first")
    assert list(annotations.items()) == before


def test_an_entity_outside_any_set_loses_the_annotation_of_one() -> None:
    annotations = {SET: "former"}
    ANNOTATOR.annotate(annotations, "api:default/a", None)
    assert SET not in annotations
    assert LOCATION in annotations


@pytest.mark.spec("annotations.ref-is-one-encoded-segment")
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_reference_is_one_segment_that_decodes_to_itself(ref: str) -> None:
    segment = quote_ref(ref)
    assert unquote(segment) == ref
    assert segment == quote(ref, safe="")
    assert "/" not in segment
