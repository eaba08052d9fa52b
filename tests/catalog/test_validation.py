"""The rules of a pushed entity's envelope."""

import unicodedata
from typing import Any

import pytest

from factbook.catalog.validation import drop_read_only, normal_name, problems

SOUND: dict[str, Any] = {
    "apiVersion": "backstage.io/v1alpha1",
    "kind": "Component",
    "metadata": {"name": "payments"},
}


def entity(**changes: Any) -> dict[str, Any]:
    return SOUND | changes


def with_metadata(**metadata: Any) -> dict[str, Any]:
    return entity(metadata={"name": "payments"} | metadata)


def paths(item: Any, **rules: Any) -> list[str]:
    return sorted(path for path, _ in problems(item, **rules))


def test_a_sound_entity_has_no_problem() -> None:
    full = with_metadata(
        namespace="a-b--c",
        title="Payments",
        description="",
        labels={"a": "b"},
        annotations={"a/b": ""},
        tags=["java", "Web 2.0"],
        links=[{"url": "https://a", "title": "A", "icon": "web", "type": "x", "note": 1}],
        foreign={"deep": [1, None]},
    )
    assert problems(full | {"spec": {"anything": [1]}}) == []


def test_what_is_no_object_is_no_entity(subtests: pytest.Subtests) -> None:
    for item in (None, 1, "text", True, [], [SOUND], 1.5):
        with subtests.test(item=item):
            assert problems(item) == [("", "an entity has to be an object")]


@pytest.mark.spec("validation.envelope-refuses")
def test_a_broken_envelope_is_refused_with_the_path_of_each_mistake(
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[Any, list[str]]] = [
        ({}, ["apiVersion", "kind", "metadata"]),
        (entity(apiVersion=1, kind=None, metadata=[]), ["apiVersion", "kind", "metadata"]),
        (entity(apiVersion="", kind="", metadata={}), ["apiVersion", "kind", "metadata.name"]),
        (entity(apiVersion="a b/v1"), ["apiVersion"]),
        (entity(apiVersion="/v1"), ["apiVersion"]),
        (entity(apiVersion="backstage.io/"), ["apiVersion"]),
        (entity(apiVersion="Backstage.io/v1"), ["apiVersion"]),
        (entity(kind="my-kind"), ["kind"]),
        (entity(kind="9lives"), ["kind"]),
        (entity(kind="K" * 64), ["kind"]),
        (entity(metadata={"name": None}), ["metadata.name"]),
        (entity(metadata={"name": 7}), ["metadata.name"]),
        (entity(spec=None), ["spec"]),
        (entity(spec="text"), ["spec"]),
        (entity(extra=1, more=2), ["extra", "more"]),
    ]
    for item, expected in cases:
        with subtests.test(item=item):
            assert paths(item) == expected


@pytest.mark.spec("validation.metadata-types-refuse")
def test_metadata_of_a_wrong_type_is_refused_with_the_path_of_each_mistake(
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"labels": []}, ["metadata.labels"]),
        ({"labels": {"a": 1, "b": "x", "c": None}}, ["metadata.labels.a", "metadata.labels.c"]),
        ({"annotations": None}, ["metadata.annotations"]),
        ({"annotations": {"a/b": True}}, ["metadata.annotations.a/b"]),
        ({"tags": "java"}, ["metadata.tags"]),
        ({"tags": ["java", "", 7, None]}, [f"metadata.tags[{i}]" for i in (1, 2, 3)]),
        ({"links": {}}, ["metadata.links"]),
        ({"links": ["x", {}]}, ["metadata.links[0]", "metadata.links[1].url"]),
        (
            {"links": [{"url": "", "title": 7}]},
            ["metadata.links[0].title", "metadata.links[0].url"],
        ),
        ({"title": ""}, ["metadata.title"]),
        ({"description": 7}, ["metadata.description"]),
        ({"namespace": "Default"}, ["metadata.namespace"]),
        ({"namespace": None}, ["metadata.namespace"]),
        ({"namespace": "-a"}, ["metadata.namespace"]),
        ({"namespace": "a" * 64}, ["metadata.namespace"]),
    ]
    for metadata, expected in cases:
        with subtests.test(metadata=metadata):
            assert paths(with_metadata(**metadata)) == expected


@pytest.mark.spec("names.may-hold-spaces-and-printables")
def test_a_name_may_hold_whatever_is_printable(subtests: pytest.Subtests) -> None:
    names = [
        "Master Account",
        "100% & more #1?",
        "Größe",
        "日本語",
        "a\\b",
        "x" * 253,
        "  padded  ",
        "🚀",
    ]
    for name in names:
        with subtests.test(name=name):
            assert problems(with_metadata(name=name)) == []


@pytest.mark.spec("names.no-slash-or-colon", "names.no-control-characters")
def test_a_name_may_not_hold_separators_or_what_nobody_sees(subtests: pytest.Subtests) -> None:
    names = ["a/b", "a:b", "a\nb", "a\0b", "a\x7fb", "a\u00a0b", "a\u200bb", "", "   ", "x" * 254]
    for name in names:
        with subtests.test(name=name):
            assert paths(with_metadata(name=name)) == ["metadata.name"]


def test_a_name_that_would_take_minutes_to_compose_is_refused_at_once() -> None:
    assert paths(with_metadata(name="x" + "\u0301\u0316" * 500_000)) == ["metadata.name"]


def test_a_names_length_is_that_of_its_composed_form() -> None:
    decomposed = unicodedata.normalize("NFD", "é" * 253)
    assert len(decomposed) > 253
    assert problems(with_metadata(name=decomposed)) == []
    assert normal_name(f" {decomposed} ") == "é" * 253


def test_strict_names_follow_the_catalog_apis_rule(subtests: pytest.Subtests) -> None:
    cases = [
        ("a", True),
        ("A.b_c-9", True),
        ("x" * 63, True),
        ("x" * 64, False),
        ("-a", False),
        ("a.", False),
        ("Master Account", False),
        ("ä", False),
        (" a", False),
    ]
    for name, sound in cases:
        with subtests.test(name=name):
            assert (problems(with_metadata(name=name), strict_names=True) == []) is sound


def test_what_only_the_service_writes_is_taken_out_and_told() -> None:
    item = with_metadata(uid="u", etag="e") | {"relations": [], "status": {}}
    warned = drop_read_only(item)
    assert [path for path, _ in warned] == ["relations", "status", "metadata.uid", "metadata.etag"]
    assert item == SOUND
    assert drop_read_only(item) == []
