"""What a read shows of an entity: as it was pushed, with uid, etag, relations and problems."""

import re
import unicodedata
from typing import Any

import pytest

from tests.service import Service, component, resource

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def shown(service: Service, ref: str) -> dict[str, Any]:
    """The entity, which has to be there."""
    entity = await service.catalog(ref)
    assert entity is not None, ref
    return entity


@pytest.mark.spec(
    "entity.api-version",
    "entity.api-version-is-kept",
    "entity.kind",
    "entity.name",
    "entity.description",
    "entity.client-annotations-are-kept",
    "entity.spec-owner",
    "entity.spec-type",
    "entity.other-fields-are-kept",
    "entity.has-no-lifecycle-state",
    "ref.metadata-keeps-its-case",
)
async def test_an_entity_comes_back_as_it_was_pushed_with_what_the_service_adds(
    service: Service,
) -> None:
    pushed: dict[str, Any] = {
        "apiVersion": "cloud.example.com/v1",
        "kind": "Resource",
        "metadata": {
            "name": "Master Account",
            "description": 'Says "metadata":{ and\nmore — ü',
            "annotations": {"Example.com/ID": "12", "plain": ""},
            "labels": {"Env": "Prod"},
            "tags": ["Java", "b"],
            "links": [{"url": "https://a", "note": "kept"}],
            "custom": {"deep": [1, 2.5, None, True, {"metadata": {}}]},
        },
        "spec": {"owner": "Team-A", "type": "account", "more": {"Nested": ["x"]}, "big": 2**60},
    }
    assert (await service.push("cloud", pushed)).status_code == 200
    entity = await shown(service, "resource:default/master account")
    metadata, annotations = entity["metadata"], entity["metadata"]["annotations"]
    assert entity.keys() == {*pushed, "relations"}
    assert metadata.keys() == {*pushed["metadata"], "uid", "etag"}
    assert UUID.fullmatch(metadata["uid"])
    assert metadata["etag"]
    assert {key: entity[key] for key in ("apiVersion", "kind", "spec")} == {
        key: pushed[key] for key in ("apiVersion", "kind", "spec")
    }
    for key in ("name", "description", "labels", "tags", "links", "custom"):
        assert metadata[key] == pushed["metadata"][key], key
    assert {"Example.com/ID": "12", "plain": ""}.items() <= annotations.items()
    assert annotations["factbook/entity-set"] == "cloud"
    listed = (await service.http.get("/api/catalog/entities")).json()
    assert listed == [entity]


@pytest.mark.spec("entity.has-no-lifecycle-state")
async def test_a_removed_entity_is_in_no_read(service: Service) -> None:
    await service.push("set", component("web"), component("shop"))
    uid = (await shown(service, "component:default/web"))["metadata"]["uid"]
    await service.push("set", component("shop"))
    assert await service.catalog("component:default/web") is None
    assert (await service.http.get(f"/api/catalog/entities/by-uid/{uid}")).status_code == 404
    listed = (await service.http.get("/api/catalog/entities?filter=metadata.name=web")).json()
    assert listed == []


@pytest.mark.spec("ref.canonical-form", "ref.all-three-parts-lower-case", "ref.default-namespace")
async def test_references_in_answers_are_canonical_and_metadata_is_not(service: Service) -> None:
    answer = await service.push("set", component("Payments", owner="User:Team/KIM"))
    [item] = answer.json()["items"]
    assert item["entityRef"] == "component:default/payments"
    entity = await shown(service, "Component:Default/PAYMENTS")
    assert "namespace" not in entity["metadata"]
    assert entity["metadata"]["name"] == "Payments"
    assert entity["relations"] == [{"type": "ownedBy", "targetRef": "user:team/kim"}]


@pytest.mark.spec(
    "catalog.relations-both-directions",
    "catalog.relations-in-the-push-transaction",
    "ref.short-forms",
)
async def test_what_spec_names_is_a_relation_on_both_ends_at_once(service: Service) -> None:
    web = component("web", owner="team-a", system="shop", dependsOn=["resource:db"])
    team = resource("team-a") | {"kind": "Group", "spec": {"type": "team", "children": []}}
    await service.push("code", web, resource("db"))
    await service.push("people", team)
    assert (await shown(service, "component:default/web"))["relations"] == [
        {"type": "dependsOn", "targetRef": "resource:default/db"},
        {"type": "ownedBy", "targetRef": "group:default/team-a"},
        {"type": "partOf", "targetRef": "system:default/shop"},  # which need not exist
    ]
    assert (await shown(service, "resource:default/db"))["relations"] == [
        {"type": "dependencyOf", "targetRef": "component:default/web"},
        {"type": "ownedBy", "targetRef": "group:default/team-a"},
    ]
    assert (await shown(service, "group:default/team-a"))["relations"] == [
        {"type": "ownerOf", "targetRef": "component:default/web"},
        {"type": "ownerOf", "targetRef": "resource:default/db"},
    ]
    await service.push("code", resource("db", note="alone"))
    assert (await shown(service, "resource:default/db"))["relations"] == [
        {"type": "ownedBy", "targetRef": "group:default/team-a"},
    ]


async def test_what_a_known_kind_misses_is_in_its_status_until_it_is_mended(
    service: Service,
) -> None:
    broken = component("web")
    del broken["spec"]["lifecycle"]
    assert (await service.push("set", broken)).status_code == 200
    entity = await shown(service, "component:default/web")
    [item] = entity["status"]["items"]
    assert "lifecycle" in item["message"]
    [listed] = (await service.http.get("/api/catalog/entities?fields=status")).json()
    assert listed == {"status": entity["status"]}
    await service.push("set", component("web"))
    assert "status" not in await shown(service, "component:default/web")


@pytest.mark.spec("names.trimmed-and-composed")
async def test_a_name_is_stored_without_blanks_around_it_and_composed(service: Service) -> None:
    decomposed = unicodedata.normalize("NFD", "Café Zürich")
    answer = await service.push("set", resource(f"  {decomposed} "))
    assert answer.status_code == 200
    assert answer.json()["items"][0]["entityRef"] == "resource:default/café zürich"
    entity = await shown(service, "resource:default/café zürich")
    assert entity["metadata"]["name"] == "Café Zürich"


@ON_SQLITE
@pytest.mark.spec("names.may-hold-spaces-and-printables", "names.at-most-253-characters")
async def test_a_printable_name_is_taken_and_found(
    service: Service, subtests: pytest.Subtests
) -> None:
    for name in ["Master Account", "a", "(x) [y] {z} & 100% #1?", "'\"\\", "日本語 ☕", "n" * 253]:
        with subtests.test(name=name):
            assert (await service.push("set", resource(name))).status_code == 200
            [listed] = (await service.http.get("/api/catalog/entities")).json()
            assert listed["metadata"]["name"] == name
            body = {"entityRefs": [f"resource:default/{name}"]}
            found = await service.http.post("/api/catalog/entities/by-refs", json=body)
            assert found.json()["items"] == [listed]


@ON_SQLITE
@pytest.mark.spec(
    "names.no-slash-or-colon",
    "names.no-control-characters",
    "names.at-most-253-characters",
    "names.kind-is-strict",
    "names.namespace-is-strict",
    "names.api-version-is-strict",
)
async def test_what_breaks_the_rule_of_a_field_is_400_naming_the_field(
    service: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, list[str]]] = [
        ("metadata.name", ["a/b", "a:b", "a\nb", "a\0b", "a\u200bb", "\x7f", "n" * 254, "", "  "]),
        ("metadata.namespace", ["Upper", "a_b", "-a", "a-", "a.b", "n" * 64, "", "a b"]),
        ("kind", ["my-kind", "1kind", "k" * 64, "", "Kind ", "a.b", "Ärger"]),
        (
            "apiVersion",
            ["1.0", "a b", "a/b/v1", "Example.com/v1", "/v1", "x/", "", "x/" + "v" * 64],
        ),
    ]
    for field, values in cases:
        with subtests.test(field=field, values=values):
            for value in values:
                entity = resource("sound")
                *parents, key = field.split(".")
                target = entity[parents[0]] if parents else entity
                target[key] = value
                answer = await service.push("set", entity)
                assert answer.status_code == 400, (field, value)
                problems = answer.json()["error"]["problems"]
                assert [problem["path"] for problem in problems] == [f"items[0].{field}"], (
                    field,
                    value,
                )


@ON_SQLITE
@pytest.mark.spec(
    "names.kind-is-strict", "names.namespace-is-strict", "names.api-version-is-strict"
)
async def test_what_keeps_the_rules_to_their_limits_is_taken(service: Service) -> None:
    entity = resource("sound", namespace="a--b-" + "9" * 58)
    entity |= {"kind": "K9" + "k" * 61, "apiVersion": "a-b.example.com/" + "V1" + "x" * 61}
    assert (await service.push("set", entity)).status_code == 200
    short = resource("short") | {"apiVersion": "v1", "kind": "k"}
    assert (await service.push("short", short)).status_code == 200


@ON_SQLITE
@pytest.mark.spec("names.strict-setting")
async def test_strict_names_are_those_of_the_catalog_api(start: Any) -> None:
    service: Service = await start(entity_names="strict")
    for name in ("Master Account", "a.", ".a", "é", "n" * 64, " a"):
        assert (await service.push("set", resource(name))).status_code == 400, name
    for name in ("a", "A.b_c-9", "a..b", "n" * 63):
        assert (await service.push("set", resource(name))).status_code == 200, name
