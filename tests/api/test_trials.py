"""Trying a data source on one entity: nothing is stored, everything is shown, nothing leaks."""

import json
from typing import Any

import pytest

from factbook.auth import permissions
from tests.service import Service, component

SOURCES = "/api/tech-insights/v1/data-sources"
DOCUMENT: dict[str, Any] = {
    "id": "tags",
    "title": "Tags",
    "handlerDefinition": {"type": "entity", "config": {"id": "tags"}},
    "schema": {
        "first": {"type": "string", "extract": {"jmespath": "metadata.tags[0]"}},
        "count": {"type": "integer", "extract": {"jmespath": "length(metadata.tags)"}},
        "wrong": {"type": "boolean", "extract": {"jmespath": "metadata.name"}},
        "none": {"type": "string", "extract": {"jmespath": "spec.nothing"}},
    },
}


@pytest.fixture
async def tagged(service: Service) -> Service:
    entity = component("web")
    entity["metadata"]["tags"] = ["python", "web"]
    assert (await service.push("all", entity)).status_code == 200
    return service


async def trial(service: Service, **body: Any) -> Any:
    return await service.http.post(f"{SOURCES}/tags/test", json=body)


async def count(service: Service, table: str) -> int:
    row = await service.state.database.one(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - ours
    assert row is not None
    return int(row[0])


async def test_a_definition_is_tried_without_being_stored(
    tagged: Service, subtests: pytest.Subtests
) -> None:
    for entity in ["web", "component:web", "Component:default/WEB"]:
        with subtests.test(entity=entity):
            answer = await trial(tagged, entity=entity, definition=DOCUMENT)
            assert answer.status_code == 200, answer.text
            found = answer.json()
            assert found["entity"] == "component:default/web"
            assert found["request"] is None
            assert found["facts"] == {"first": "python", "count": 2}
            assert found["reasons"] == {
                "wrong": "bad-definition: schema.wrong.type: expected a boolean, not this string",
                "none": "not-applicable: the document has no such value",
            }
            assert json.loads(found["answer"]["body"])["metadata"]["name"] == "web"
            assert (await tagged.http.get(f"{SOURCES}/tags")).status_code == 404
            assert [await count(tagged, table) for table in ("facts_latest", "data_sources")] == [
                0,
                0,
            ]


async def test_a_trial_shows_the_whole_entity_and_not_only_what_is_extracted(
    tagged: Service,
) -> None:
    named = {**DOCUMENT, "schema": {"name": {"type": "string", "extract": {"jmespath": "kind"}}}}
    made = (await trial(tagged, entity="web", definition=named)).json()
    shown = await tagged.http.get("/api/catalog/entities/by-name/component/default/web")
    assert json.loads(made["answer"]["body"]) == shown.json()


async def test_without_a_definition_the_draft_is_tried_before_what_is_published(
    tagged: Service,
) -> None:
    assert (await tagged.http.post(SOURCES, json=DOCUMENT)).status_code == 201
    assert (await tagged.http.post(f"{SOURCES}/tags/publish")).status_code == 200
    changed = {**DOCUMENT, "schema": {"name": {"type": "string", "extract": {"regex": "we."}}}}
    assert (await tagged.http.put(f"{SOURCES}/tags", json=changed)).status_code == 200
    assert (await trial(tagged, entity="web")).json()["facts"] == {"name": "web"}


async def test_what_cannot_be_tried_is_told(tagged: Service, subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"entity": "nobody", "definition": DOCUMENT}, 404, "no entity component:default/nobody"),
        ({"entity": "a b c/", "definition": DOCUMENT}, 400, "not of the form"),
        ({"entity": "web"}, 404, "no data source"),
        ({"definition": DOCUMENT}, 400, "entity"),
        ({"entity": "web", "definition": {**DOCUMENT, "id": "other"}}, 400, "has to be tags"),
        ({"entity": "web", "definition": {"id": "tags"}}, 400, "title"),
        ({"entity": "web", "definition": []}, 400, "object"),
        ({"entity": "web", "more": 1}, 400, "more"),
    ]
    for body, status, message in cases:
        with subtests.test(body=body):
            answer = await trial(tagged, **body)
            assert (answer.status_code, message in answer.text) == (status, True), answer.text


async def test_a_connection_that_is_not_configured_is_told(tagged: Service) -> None:
    asking = {
        **DOCUMENT,
        "handlerDefinition": {
            "type": "http",
            "config": {"id": "tags", "connection": "ci", "path": "/x"},
        },
    }
    answer = await trial(tagged, entity="web", definition=asking)
    assert answer.status_code == 400
    assert "no connection 'ci'" in answer.json()["error"]["message"]


@pytest.mark.parametrize("missing", ["catalog.entity.read", "tech-insights.data-source.write"])
async def test_a_trial_takes_both_permissions(tagged: Service, missing: str) -> None:
    wanted = [one.name for one in permissions.PERMISSIONS if one.name != missing]
    token = await tagged.token(*wanted)
    answer = await tagged.http.post(
        f"{SOURCES}/tags/test",
        json={"entity": "web", "definition": DOCUMENT},
        headers={"authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 403
    assert missing in answer.text
