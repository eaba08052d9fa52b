"""What is stored and will not act, or is in the wrong place, is told to whoever pushed it."""

import json
from typing import Any

import pytest

from tests.service import PUSH, Service, component


def entity(kind: str, name: str = "a", api: str = "backstage.io/v1alpha1", **spec: Any) -> Any:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def warnings(service: Service, *items: Any) -> list[tuple[str, str]]:
    answer = await service.push("first", *items)
    assert answer.status_code == 200, answer.text
    return [(each["path"], each["message"]) for each in answer.json()["warnings"]]


async def problems(service: Service, item: Any) -> list[tuple[str, str]]:
    answer = await service.push("first", item)
    assert answer.status_code == 400, answer.text
    return [(each["path"], each["message"]) for each in answer.json()["error"]["problems"]]


async def test_a_placeholder_that_nobody_filled_in_is_told_once_for_an_entity(
    service: Service,
) -> None:
    skeleton = component(
        "${{ values.name }}", owner="${{ values.owner }}", dependsOn=["component:${{ values.x }}"]
    )
    quoted = component("{{ cookiecutter.name }}")
    two = component("${{ values.a }}", owner="${{ values.owner }}")
    assert await warnings(service, skeleton, quoted, component("b"), two) == [
        (
            "items[0].metadata.name",
            "${{ values.name }} is a placeholder that nothing fills in; other fields with one: 2",
        ),
        (
            "items[1].metadata.name",
            "{{ cookiecutter.name }} is a placeholder that nothing fills in",
        ),
        (
            "items[3].metadata.name",
            "${{ values.a }} is a placeholder that nothing fills in; other fields with one: 1",
        ),
    ]


async def test_what_is_written_with_escapes_is_told_all_the_same(service: Service) -> None:
    skeleton = entity("API", owner="${{ values.owner }}", definition={"$text": "./api.yaml"})
    body = json.dumps({"items": [skeleton]})
    body = body.replace("{{", "\\u007b\\u007b").replace("$", "\\u0024")
    answer = await service.http.put(f"{PUSH}/sets/first", content=body)
    paths = [each["path"] for each in answer.json()["warnings"]]
    assert {"items[0].spec.owner", "items[0].spec.definition"} <= set(paths)


async def test_a_template_and_a_definition_may_hold_placeholders(service: Service) -> None:
    template = entity(
        "Template",
        api="scaffolder.backstage.io/v1beta3",
        type="service",
        owner="${{ user.entity.metadata.name }}",
        steps=[{"action": "fetch:template", "input": {"name": "${{ parameters.name }}"}}],
    )
    api = entity("API", "b", type="t", lifecycle="x", owner="o", definition="${{ a }} {{ b }}")
    assert await warnings(service, template, api) == []


async def test_what_a_location_points_to_is_said_to_be_unread(service: Service) -> None:
    told = "is stored and not read: push the entities that are there"
    locations = (
        entity("Location", "a", type="url", target="https://example.com/a.yaml"),
        entity("Location", "b", targets=["./b.yaml", "./c.yaml"]),
        entity("Location", "c", targets=[]),
    )
    assert await warnings(service, *locations) == [
        ("items[0].spec.target", told),
        ("items[1].spec.targets", told),
    ]


async def test_content_that_is_to_be_read_from_elsewhere_is_named(service: Service) -> None:
    base = {"type": "openapi", "lifecycle": "x", "owner": "o"}
    apis = (
        entity("API", "a", **base, definition={"$text": "./openapi.yaml"}),
        entity("API", "b", **base, definition="x", parts=[{"$json": "https://example.com/b"}]),
        entity("API", "c", **base, definition="x", parts={"$text": "both", "other": "members"}),
    )
    assert await warnings(service, *apis) == [
        ("items[0].spec.definition", "$text: ./openapi.yaml is not read: put its content there"),
        (
            "items[1].spec.parts[0]",
            "$json: https://example.com/b is not read: put its content there",
        ),
    ]


async def test_a_kind_that_is_a_letter_off_a_known_one_is_told(
    service: Service, subtests: pytest.Subtests
) -> None:
    for kind, meant in [
        ("Componet", "Component"),
        ("Componennt", "Component"),
        ("Compoment", "Component"),
        ("Componetn", "Component"),
        ("Xcomponent", "Component"),
        ("systems", "System"),
        ("Usr", "User"),
    ]:
        with subtests.test(kind=kind, meant=meant):
            told = f'"{kind}" is stored as a kind of its own; {meant} is meant?'
            assert await warnings(service, entity(kind)) == [("items[0].kind", told)]


async def test_kinds_that_are_others_or_in_other_letters_are_not_told(service: Service) -> None:
    items = (entity("Team"), entity("SpaceShip"), component("b") | {"kind": "COMPONENT"})
    assert await warnings(service, *items) == []


async def test_an_object_of_kubernetes_is_told_as_one(service: Service) -> None:
    told = "is an object of Kubernetes, stored as an entity of that kind; leave it out"
    stored = (
        entity("Deployment", "a", "apps/v1", replicas=2),
        entity("Service", "b", "v1"),
        entity("Ingress", "c", "networking.k8s.io/v1"),
        entity("Component", "d", "v1"),
        entity("SpaceShip", "e", "example.com/v1"),
    )
    assert await warnings(service, *stored) == [(f"items[{n}]", told) for n in range(3)]
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {}}
    assert await problems(service, config) == [
        ("items[0]", "this is an object of Kubernetes and no entity: leave it out")
    ]


async def test_a_field_in_the_wrong_place_is_told_the_right_one(service: Service) -> None:
    item = component("a") | {"dependsOn": ["component:b"], "tags": ["x"], "data": 1}
    assert await problems(service, item) == [
        (
            "items[0].data",
            "unknown field; an entity has apiVersion, kind, metadata and spec",
        ),
        ("items[0].dependsOn", "unknown field at the root; spec.dependsOn is meant"),
        ("items[0].tags", "unknown field at the root; metadata.tags is meant"),
    ]


async def test_a_document_that_is_no_entity_at_all_is_one_problem(service: Service) -> None:
    assert await problems(service, {"name": "x", "path": "y", "single": True}) == [
        ("items[0]", "apiVersion, kind and metadata are not there: this is no entity")
    ]


async def test_one_entity_that_is_pushed_alone_has_its_warnings(service: Service) -> None:
    answer = await service.http.post(f"{PUSH}/sets/first", json=entity("Componet"))
    assert [each["path"] for each in answer.json()["warnings"]] == ["kind"]


async def test_the_strict_rules_say_the_same(service: Service) -> None:
    async def told(item: Any) -> list[str]:
        body = {"entity": item, "location": "url:https://example.com"}
        answer = await service.http.post("/api/catalog/validate-entity", json=body)
        return [each["message"] for each in answer.json()["errors"]]

    misplaced = component("a") | {"dependsOn": []}
    assert await told(misplaced) == [
        "dependsOn: unknown field at the root; spec.dependsOn is meant"
    ]
    [kind] = await told(entity("Componet"))
    assert kind.endswith("; Component is meant?")
    assert await told({"name": "x"}) == [
        "the entity: apiVersion, kind and metadata are not there: this is no entity"
    ]
    assert await told(entity("Deployment", api="apps/v1")) == [
        "the entity: this is an object of Kubernetes and no entity: leave it out"
    ]
