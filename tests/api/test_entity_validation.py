"""What validate-entity says of an entity, which it does not store."""

import json
from typing import Any

import pytest

from tests.conftest import StartService
from tests.service import Service, component, resource

VALIDATE = "/api/catalog/validate-entity"
LOCATION = "url:https://example.com/catalog-info.yaml"

pytestmark = [
    pytest.mark.spec("catalog.validate-entity"),
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
]


async def problems(service: Service, entity: Any, location: str = LOCATION) -> dict[str, str]:
    """What is wrong by its path; empty for a valid entity."""
    body = {"entity": entity, "location": location}
    answer = await service.http.post(VALIDATE, json=body)
    if answer.status_code == 200:
        assert answer.content == b""
        return {}
    assert answer.status_code == 400, answer.text
    assert list(answer.json()) == ["errors"]
    errors = answer.json()["errors"]
    assert errors
    assert {error["name"] for error in errors} == {"InputError"}
    return {error["path"]: error["message"] for error in errors}


async def test_a_valid_entity_is_answered_without_a_body_and_not_stored(service: Service) -> None:
    assert await problems(service, component("payments")) == {}
    assert await service.catalog("component:default/payments") is None


async def test_every_problem_is_told_at_once_with_its_path(service: Service) -> None:
    entity = component("pay ments", owner="", dependsOn=["foo"], providesApis=["a", 1])
    entity["metadata"] |= {"labels": {"a/b/c": "x"}, "tags": ["ok", "Not"], "links": [{"url": "x"}]}
    entity |= {"kind": "Component", "apiVersion": "backstage.io/v1alpha1", "relations": []}
    found = await problems(service, entity)
    assert set(found) == {
        "entity.metadata.name",
        "entity.metadata.labels.a/b/c",
        "entity.metadata.tags[1]",
        "entity.metadata.links[0].url",
        "entity.relations",
        "entity.spec.owner",
        "entity.spec.dependsOn[0]",
        "entity.spec.providesApis[1]",
    }
    assert found["entity.spec.owner"] == "spec.owner: has to be a non-empty string"


async def test_what_a_push_takes_can_be_no_valid_entity(service: Service) -> None:
    spaced = resource("Master Account")
    spaceship = resource("enterprise") | {"kind": "Spaceship"}
    answer = await service.push("wide", spaced, spaceship)
    assert answer.status_code == 200
    assert set(await problems(service, spaced)) == {"entity.metadata.name"}
    assert "not a known kind" in (await problems(service, spaceship))["entity.kind"]


async def test_a_known_kind_in_a_foreign_api_version_is_not_valid(service: Service) -> None:
    found = await problems(service, component("a") | {"apiVersion": "example.com/v1"})
    assert list(found) == ["entity.apiVersion"]
    assert "backstage.io/v1alpha1 or backstage.io/v1beta1" in found["entity.apiVersion"]


async def test_what_is_no_object_is_no_entity(service: Service, subtests: pytest.Subtests) -> None:
    cases: list[Any] = [None, 1, "text", [], True]
    for entity in cases:
        with subtests.test(entity=entity):
            assert await problems(service, entity) == {"entity": "the entity: has to be an object"}


async def test_a_location_has_to_be_the_address_of_something(
    service: Service, subtests: pytest.Subtests
) -> None:
    for location in ["", "url:", "file:/a", "https://a/b", "url:javascript:x"]:
        with subtests.test(location=location):
            assert list(await problems(service, component("a"), location)) == ["location"]


async def test_a_location_among_the_annotations_has_to_be_one(service: Service) -> None:
    entity = resource("a", annotations={"backstage.io/managed-by-location": "https://a/b"})
    found = await problems(service, entity)
    assert list(found) == ["entity.metadata.annotations.backstage.io/managed-by-location"]


async def test_another_body_is_an_error_of_the_usual_form(
    service: Service, subtests: pytest.Subtests
) -> None:
    for body in [
        "",
        "{",
        "[]",
        "{}",
        '{"entity": {}}',
        '{"location": "url:x"}',
        '{"entity": {}, "location": 1}',
        '{"entity": {}, "location": "url:x", "more": 1}',
        '{"entity": ' + "[" * 200 + "]" * 200 + ', "location": "url:x"}',
        '{"entity": ' + "[" * 100_000 + "]" * 100_000 + ', "location": "url:x"}',
    ]:
        with subtests.test(body=body):
            answer = await service.http.post(VALIDATE, content=body)
            assert answer.status_code == 400
            assert answer.json()["error"]["name"] == "InputError"


async def test_a_large_body_is_refused(service: Service) -> None:
    body = {"entity": component("a", note="x" * 1024 * 1024), "location": LOCATION}
    answer = await service.http.post(VALIDATE, json=body)
    assert answer.status_code == 413


async def test_of_countless_problems_a_thousand_are_told(service: Service) -> None:
    entity = resource("a", tags=[""] * 5000)
    assert len(await problems(service, entity)) == 1000


async def test_it_needs_a_token_that_may_read_the_catalog(service: Service) -> None:
    body = {"entity": component("a"), "location": LOCATION}
    async with service.client(None) as http:
        assert (await http.post(VALIDATE, json=body)).status_code == 401
    async with service.client(await service.token("catalog.entity-set.write")) as http:
        answer = await http.post(VALIDATE, json=body)
        assert answer.status_code == 403
        assert "catalog.entity.read" in answer.text
    async with service.client(await service.token("catalog.entity.read")) as http:
        assert (await http.post(VALIDATE, json=body)).status_code == 200


TABLES = {
    "github": {
        "default": {"token": "ghp_a_token_of_tests"},
        "own": {"token": "ghp_another_of_tests", "host": "git.example.com"},
    },
    "datadog": {"default": {"api_key": "a_key_of_tests", "application_key": "another_of_tests"}},
}
SLUG = "github.com/project-slug"
TAGS = "datadoghq.com/monitor_tags"


async def test_annotations_that_no_integration_can_read_are_warned_of_beside_an_empty_answer(
    start: StartService, subtests: pytest.Subtests
) -> None:
    service = await start(integrations=TABLES, collect=False)
    entity = component("web")
    cases: list[tuple[dict[str, str], list[str]]] = [
        ({}, []),
        ({SLUG: "acme/x", TAGS: "team:one"}, []),
        ({SLUG: "https://github.com/acme/x.git"}, []),
        ({SLUG: "acme"}, ["github"]),
        ({SLUG: "https://evil.example.com/acme/x", TAGS: "a AND b"}, ["datadog", "github"]),
        # One that can read it suffices.
        ({SLUG: "acme", "git.example.com/project-slug": "acme/x"}, []),
        ({"gitlab.com/project-slug": "acme"}, []),
    ]
    for annotations, vendors in cases:
        with subtests.test(annotations=annotations, vendors=vendors):
            entity["metadata"]["annotations"] = annotations
            answer = await service.http.post(
                VALIDATE, json={"entity": entity, "location": LOCATION}
            )
            assert (answer.status_code, answer.content) == (200, b"")
            warnings = json.loads(answer.headers.get("factbook-warnings", "[]"))
            assert sorted(text.split()[4] for text in warnings) == vendors
            for text in warnings:
                assert text.startswith("metadata.annotations: no integration with ")
                assert "evil" not in text
