"""Every mistake of a definition is told at once, wherever it stands."""

from typing import Any

import pytest

from factbook.datasources.custom import definition
from factbook.errors import InvalidItemsError
from tests.api.defining import of_entities, pushed


def told(document: Any) -> list[str]:
    with pytest.raises(InvalidItemsError) as caught:
        definition.read_source_definition(document)
    return [problem["path"] for problem in caught.value.details["problems"]]


def test_a_definition_without_a_mistake_is_read() -> None:
    assert definition.read_source_definition(of_entities()).type == "entity"


def test_mistakes_of_the_source_and_of_how_it_is_come_by_are_told_together() -> None:
    document = of_entities(cadence="daily", more=1)
    document["handlerDefinition"]["config"] |= {"path": "/", "extractor": "other"}
    document["schema"] = {
        "a": {"type": "bool", "extract": 1},
        "b.c": {"type": "string", "extract": {"jmespath": "["}},
        "b": {"type": "string", "extract": {"jmespath": "x"}, "odd": 1},
        "codehost.issues.open": {"type": "string", "extract": {"jmespath": "x"}},
    }
    assert told(document) == [
        "more",
        "cadence",
        "schema.a.type",
        "schema.codehost.issues.open.type",
        "schema.b.odd",
        "handlerDefinition.config.extractor",
        "handlerDefinition.config.path",
        "schema.b.c.extract",
    ]


def test_what_follows_from_a_mistake_is_not_told_as_another(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, list[str] | None]] = [
        ([], [""]),
        ({}, ["id", "title"]),
        ({"id": "a b", "title": "", "schema": []}, ["id", "title", "schema"]),
        (pushed(id="a b"), ["id"]),
        (pushed(title=None), ["title"]),
        (pushed(schema={"a": 1}), ["schema.a", "schema.a.type"]),
        (pushed(handlerDefinition=1, title=""), None),
        (pushed(entityFilter=[{"": 1}], cadence="0 * * * *"), ["entityFilter[0]", "cadence"]),
    ]
    for document, paths in cases:
        with subtests.test(document=document):
            found = told(document)
            assert len(found) == len(set(found))
            assert paths is None or found == paths
