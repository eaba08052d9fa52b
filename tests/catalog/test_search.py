"""The flattened index behind filters."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.catalog.store import conditions
from factbook.catalog.store.conditions import EXISTS_VALUE, MAX_VALUE_LENGTH, make_search_text
from tests.soak import examples


def flatten(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(key, value) for key, value, _ in conditions.flatten_document(document)}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda children: st.lists(children) | st.dictionaries(st.text(max_size=100), children),
    max_leaves=20,
)


def test_keys_are_dotted_paths_and_both_sides_are_lower_case() -> None:
    assert flatten({"spec": {"Owner": "Team-A", "deep": {"er": True}}}) == {
        ("spec.owner", "team-a"),
        ("spec.deep.er", "true"),
    }


def test_a_list_is_found_by_each_value_and_by_a_key_for_each() -> None:
    assert flatten({"metadata": {"tags": ["Java", "web"]}}) == {
        ("metadata.tags", "java"),
        ("metadata.tags", "web"),
        ("metadata.tags.java", "true"),
        ("metadata.tags.web", "true"),
    }


def test_objects_in_a_list_are_flattened_under_the_lists_key() -> None:
    document = {"metadata": {"links": [{"url": "http://a"}, {"url": "http://b", "n": 1}]}}
    assert flatten(document) == {
        ("metadata.links.url", "http://a"),
        ("metadata.links.url", "http://b"),
        ("metadata.links.n", "1"),
    }


def test_columns_and_what_reads_add_are_left_out() -> None:
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Component",
        "metadata": {"name": "a", "namespace": "b", "uid": "c", "etag": "d", "title": "Kept"},
        "relations": [{"type": "ownedBy"}],
        "status": {"items": []},
        "spec": {"status": "kept too"},
    }
    assert flatten(document) == {
        ("apiversion", "v1"),
        ("kind", "component"),
        ("metadata.name", "a"),
        ("metadata.title", "kept"),
        ("spec.status", "kept too"),
    }


def test_scalars_are_indexed_as_text(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, str]] = [
        ("Text", "text"),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (3.0, "3"),
        (0.5, "0.5"),
        (None, EXISTS_VALUE),
        ("x" * MAX_VALUE_LENGTH, "x" * MAX_VALUE_LENGTH),
        ("x" * (MAX_VALUE_LENGTH + 1), EXISTS_VALUE),
        (10**MAX_VALUE_LENGTH, EXISTS_VALUE),
        ("nul\0inside", "nulinside"),
    ]
    for value, indexed in cases:
        with subtests.test(value=value):
            assert make_search_text(value) == indexed


def test_keys_too_long_to_index_are_left_out() -> None:
    assert flatten({"spec": {"k" * 300: "v", "list": ["x" * 300]}}) == {("spec.list", EXISTS_VALUE)}


@pytest.mark.slow
@examples(20)
@given(st.dictionaries(st.text(max_size=100), JSON))
def test_whatever_json_says_fits_the_index_of_both_databases(document: dict[str, Any]) -> None:
    for key, value, written in conditions.flatten_document(document):
        assert "\0" not in key + value + written
        assert written.lower() in ("", value)
        assert len(key) <= MAX_VALUE_LENGTH
        # A row of PostgreSQL's index holds some 2,700 bytes.
        assert len(value.encode()) <= 1_600
        assert key == key.lower()
