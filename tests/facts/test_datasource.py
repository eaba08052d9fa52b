"""Data sources: what discovery shows, what a document may say, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest

from factbook.clock import DAY, HOUR, MINUTE
from factbook.errors import InvalidItemsError
from factbook.facts.datasource import (
    DataSource,
    Handler,
    Lifecycle,
    duration_milliseconds,
    parse_source,
)
from factbook.facts.schema import TYPES, Fact

DOCUMENT: dict[str, Any] = {
    "id": "coverage",
    "title": "Coverage",
    "description": "Coverage of the last build.",
    "cadence": "30 6 * * mon-fri",
    "lifecycle": {"timeToLive": {"weeks": 2, "days": 1}},
    "createdAt": "2026-11-21T06:00:00.000+00:00",
    "updatedAt": "2026-11-21T07:00:00.500+00:00",
    "handlerDefinition": {"type": "http", "config": {"id": "coverage", "builtinId": "http-json"}},
    "timeout": {"minutes": 20},
    "draft": True,
    "version": "1.2.0-rc.1+build.5",
    "entityFilter": [{"kind": ["component"], "metadata.annotations.ci/id": {"exists": True}}],
    "schema": {
        "percent": {
            "type": "float",
            "description": "Share of covered lines.",
            "metadata": {"key": "percent"},
            "unit": "percent",
        },
        "measured": {"type": "datetime", "metadata": {"key": "measured"}},
    },
}


def with_(**fields: Any) -> dict[str, Any]:
    return {**DOCUMENT, **fields}


def problems_of(document: object) -> dict[str, str]:
    with pytest.raises(InvalidItemsError) as raised:
        parse_source(document)
    problems: list[dict[str, str]] = raised.value.details["problems"]
    return {problem["path"]: problem["message"] for problem in problems}


@pytest.mark.spec(
    "source.id",
    "source.title",
    "source.optional-strings",
    "source.draft",
    "source.handler-definition",
    "source.schema",
    "source.schema-metadata-key",
)
def test_what_a_document_says_is_what_discovery_shows() -> None:
    assert parse_source(DOCUMENT).render() == DOCUMENT


def test_only_id_and_title_are_required() -> None:
    source = parse_source({"id": "a", "title": "A"})
    assert source == DataSource(id="a", title="A")
    assert source.render() == {
        "id": "a",
        "title": "A",
        "draft": False,
        "version": "1.0.0",
        "schema": {},
    }


def test_null_means_not_given() -> None:
    nulls = {key: None for key in DOCUMENT if key not in {"id", "title"}}
    assert parse_source({"id": "a", "title": "A", **nulls}) == DataSource(id="a", title="A")


def test_facts_are_read_with_their_types_and_units() -> None:
    assert parse_source(DOCUMENT).schema == (
        Fact("percent", "float", "Share of covered lines.", "percent"),
        Fact("measured", "datetime"),
    )


@pytest.mark.spec("source.schema")
def test_the_seven_types_are_those_of_the_mission() -> None:
    expected = {"integer", "float", "string", "boolean", "datetime", "set", "object"}
    assert set(TYPES) == expected


@pytest.mark.spec("source.handler-definition-hides-the-rest")
def test_nothing_else_of_the_configuration_is_shown() -> None:
    config = {"id": "a", "url": "https://ci.example.com", "token": "hush"}
    source = parse_source(with_(handlerDefinition={"type": "http", "config": config}))
    assert source.handler == Handler(
        "http", "a", config={"url": "https://ci.example.com", "token": "hush"}
    )
    assert source.render()["handlerDefinition"] == {"type": "http", "config": {"id": "a"}}
    assert "hush" not in repr(source)


def test_the_entity_filter_may_be_json_text() -> None:
    text = '[{"kind": ["component"], "metadata.annotations.ci/id": {"exists": true}}]'
    assert parse_source(with_(entityFilter=text)) == parse_source(DOCUMENT)


def test_a_time_with_another_offset_is_the_same_moment() -> None:
    moved = parse_source(with_(createdAt="2026-11-21T07:00:00+01:00"))
    assert moved.created_at == parse_source(DOCUMENT).created_at


def test_durations_add_up_their_units() -> None:
    assert duration_milliseconds({"hours": 1, "minutes": 30}) == HOUR + 30 * MINUTE
    assert duration_milliseconds({"months": 1, "weeks": 1, "days": 1}) == 38 * DAY


@pytest.mark.spec("source.lifecycle")
def test_a_lifecycle_keeps_a_number_of_items_or_what_is_young() -> None:
    two = Lifecycle(max_items=2)
    assert two.keeps(2, 100 * DAY)
    assert not two.keeps(3, 0)
    week = Lifecycle(time_to_live={"weeks": 1})
    assert week.keeps(1_000, 7 * DAY)
    assert not week.keeps(1, 7 * DAY + 1)


@pytest.mark.parametrize("document", [None, [], "text", 1])
def test_what_is_no_object_is_refused(document: object) -> None:
    assert problems_of(document) == {"": "a data source has to be an object"}


WRONG: list[tuple[str, Any, str]] = [
    ("id", "", "id"),
    ("id", "a/b", "id"),
    ("id", 1, "id"),
    ("title", " ", "title"),
    ("description", 1, "description"),
    ("lifecycle", {}, "lifecycle"),
    ("lifecycle", {"maxItems": 1, "timeToLive": {"days": 1}}, "lifecycle"),
    ("lifecycle", {"maxItems": 0}, "lifecycle.maxItems"),
    ("lifecycle", {"maxItems": True}, "lifecycle.maxItems"),
    ("lifecycle", {"timeToLive": "P1D"}, "lifecycle.timeToLive"),
    ("lifecycle", {"timeToLive": {}}, "lifecycle.timeToLive"),
    ("lifecycle", {"timeToLive": {"minutes": 1}}, "lifecycle.timeToLive"),
    ("lifecycle", {"timeToLive": {"days": -1}}, "lifecycle.timeToLive.days"),
    ("createdAt", "yesterday", "createdAt"),
    ("createdAt", "0001-01-01T00:00:00+14:00", "createdAt"),
    ("updatedAt", 1, "updatedAt"),
    ("handlerDefinition", "http", "handlerDefinition"),
    ("handlerDefinition", {"type": "http", "config": {}}, "handlerDefinition.config.id"),
    ("handlerDefinition", {"config": {"id": "a"}}, "handlerDefinition.type"),
    (
        "handlerDefinition",
        {"type": "builtin", "config": {"id": "a", "builtinId": 1}},
        "handlerDefinition.config.builtinId",
    ),
    ("draft", "yes", "draft"),
    ("schema", [], "schema"),
    ("schema", {"a": 1}, "schema.a.type"),
    ("schema", {"a": {"type": "number"}}, "schema.a.type"),
    ("schema", {"a": {"type": ["float"]}}, "schema.a.type"),
    ("schema", {"a": {"type": "float", "description": 1}}, "schema.a.description"),
    ("schema", {"a": {"type": "float", "metadata": {"key": "b"}}}, "schema.a.metadata.key"),
    ("tilte", "Coverage", "tilte"),
]


def test_a_problem_is_named_with_its_path(subtests: pytest.Subtests) -> None:
    for field, value, path in WRONG:
        with subtests.test(field=field, value=value):
            assert path in problems_of(with_(**{field: value}))


@pytest.mark.spec("source.version-is-semantic")
def test_a_version_that_is_not_semantic_is_refused(subtests: pytest.Subtests) -> None:
    for version in ("1", "1.0", "v1.0.0", "01.0.0", "1.0.0-01", "1.0.0 ", 1.0):
        with subtests.test(version=version):
            assert list(problems_of(with_(version=version))) == ["version"]


@pytest.mark.spec("source.cadence-is-cron")
def test_a_cadence_that_is_not_a_cron_line_is_refused(subtests: pytest.Subtests) -> None:
    for cadence in ("@daily", "* * * * * *", "61 * * * *", "0 0 31 2 *", 5):
        with subtests.test(cadence=cadence):
            assert list(problems_of(with_(cadence=cadence))) == ["cadence"]


@pytest.mark.spec("source.timeout")
def test_a_timeout_that_is_not_a_duration_is_refused(subtests: pytest.Subtests) -> None:
    for timeout in (20, "PT20M", {}, {"days": 1}, {"minutes": 1, "years": 1}):
        with subtests.test(timeout=timeout):
            assert list(problems_of(with_(timeout=timeout))) == ["timeout"]


def test_every_problem_is_reported_at_once() -> None:
    problems = problems_of(
        {"cadence": "61 25 * * *", "version": "1", "entityFilter": [1], "extra": True}
    )
    assert problems == {
        "extra": "is not a field of a data source",
        "id": "is required",
        "title": "is required",
        "cadence": 'minute: "61" is not between 0 and 59; hour: "25" is not between 0 and 23',
        "version": "has to be a semantic version such as 1.0.0",
        "entityFilter[0]": "has to be an object of dotted paths and values",
    }


def test_checking_values_goes_by_the_schema_of_the_source() -> None:
    source = replace(parse_source(DOCUMENT), schema=(Fact("percent", "float"),))
    assert source.check({"percent": 99}).stored == {"percent": 99}
