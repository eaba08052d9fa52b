"""What a push refuses, what it stores all the same, and how it says so."""

import json
import unicodedata
from typing import Any

import pytest

from tests.conftest import StartService
from tests.service import PUSH, Service, component, resource


async def stored(service: Service) -> Any:
    """Everything that was pushed."""
    return (await service.http.get(f"{PUSH}/entities")).json()["items"]


BROKEN = [
    b"", b"{", b"[]", b"null", b'"items"', b"{}", b'{"items":null}', b'{"items":{}}',
    b'{"items":"x"}', b'{"items":[1,]}', b'{"items":[NaN]}', b'{"items":["\xff"]}',
    b'{"items":["\\ud800"]}', b'{"items":[{"a":1e999}]}', b"items: []", b"\xef\xbb\xbf{}",
    b"[" * 50_000, b'{"items":[' + b'{"a":' * 50_000,
]  # fmt: skip


@pytest.mark.spec("push.request-body")
async def test_a_body_that_is_no_json_object_of_items_is_refused_and_loses_nothing(
    service: Service,
) -> None:
    await service.push("first", component("a"))
    before = await stored(service)
    for body in BROKEN:
        for path in ("/sets/first", "/sets/second"):
            answer = await service.http.put(PUSH + path, content=body)
            assert answer.status_code == 400, (body, answer.text)
            error = answer.json()["error"]
            assert error["name"] == "InputError"
            assert error["message"]
            assert "Traceback" not in answer.text
    assert await stored(service) == before


@pytest.mark.spec(
    "validation.all-or-nothing",
    "validation.every-mistake-at-once",
    "validation.json-path-of-each-mistake",
)
async def test_one_bad_item_refuses_all_and_every_mistake_is_told_with_its_path(
    service: Service,
) -> None:
    await service.push("first", component("a"))
    before = await stored(service)
    items: list[Any] = [component(f"c{number}") for number in range(6)]
    items[1]["metadata"] |= {"labels": {"a": 1}, "tags": ["x", 2], "links": [{"title": ""}]}
    items[3]["metadata"]["name"] = "a/b"
    items[3]["apiVersion"] = "not a version"
    items[4] = ["no entity"]
    items[5] = component("C0")
    answer = await service.push("first", *items)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert {problem["path"] for problem in error["problems"]} == {
        "items[1].metadata.labels.a",
        "items[1].metadata.tags[1]",
        "items[1].metadata.links[0].url",
        "items[1].metadata.links[0].title",
        "items[3].metadata.name",
        "items[3].apiVersion",
        "items[4]",
        "items[5]",
    }
    assert all(problem["message"] for problem in error["problems"])
    assert error["message"].startswith("8 problems, nothing was written: items[1]")
    assert answer.json()["response"] == {"statusCode": 400}
    assert await stored(service) == before


WRONG: list[tuple[str, Any]] = [
    ("apiVersion", None),
    ("apiVersion", 1),
    ("kind", "not-a-kind"),
    ("metadata.name", ""),
    ("metadata.labels", ["a"]),
    ("metadata.annotations", {"a": {"b": "c"}}),
    ("metadata.tags", {"a": "b"}),
    ("metadata.links", "https://a"),
]


@pytest.mark.spec("validation.envelope-refuses", "validation.metadata-types-refuse")
async def test_each_wrong_type_alone_refuses_the_push(service: Service) -> None:
    for path, value in WRONG:
        bad: dict[str, Any] = component("bad")
        holder, _, key = path.rpartition(".")
        (bad["metadata"] if holder else bad)[key] = value
        answer = await service.push("first", component("good"), bad)
        assert answer.status_code == 400, path
        [problem] = answer.json()["error"]["problems"]
        assert problem["path"].startswith(f"items[1].{path}")
    assert await stored(service) == []


@pytest.mark.spec("validation.duplicates-are-400")
async def test_one_reference_twice_is_refused_naming_both_positions(service: Service) -> None:
    answer = await service.push("first", component("a"), component("b"), component("A"))
    assert answer.status_code == 400
    [problem] = answer.json()["error"]["problems"]
    assert problem["path"] == "items[2]"
    assert "component:default/a is also items[0]" in problem["message"]
    assert await stored(service) == []


@pytest.mark.spec(
    "validation.unknown-kinds-are-kept",
    "validation.foreign-metadata-is-kept",
    "entity.api-version-is-kept",
    "ref.metadata-keeps-its-case",
)
async def test_unknown_kinds_and_foreign_keys_are_stored_as_they_came(service: Service) -> None:
    sent = {
        "apiVersion": "example.com/v7beta1",
        "kind": "SpaceShip",
        "metadata": {
            "name": "Rocinante",
            "crew": [{"Name": "Naomi", "n": 10**30, "x": 0.1, "none": None}],
            "nul\0key": "nul\0value",
            "": {"": []},
        },
        "spec": {"Übung": {"deep": [[["x"]]]}, "owner": "Free Navy", "big": 3**400},
    }
    answer = await service.push("fleet", sent)
    assert answer.status_code == 200, answer.text
    assert answer.json()["warnings"] == []
    entity = await service.catalog("spaceship:default/rocinante")
    assert entity is not None
    assert {key: value for key, value in entity["metadata"].items() if key in sent["metadata"]} == (
        sent["metadata"]
    )
    assert (entity["spec"], entity["kind"], entity["apiVersion"]) == (
        *(sent["spec"], "SpaceShip", "example.com/v7beta1"),
    )  # fmt: skip
    assert (await service.push("fleet", sent)).json()["changes"]["unchanged"] == 1


@pytest.mark.spec(
    "validation.missing-spec-field-is-stored",
    "validation.problem-in-status-items",
    "validation.problem-in-warnings",
    "response.warnings",
)
async def test_a_known_kind_that_lacks_a_field_is_stored_and_the_lack_is_told(
    service: Service,
) -> None:
    lacking = component("a")
    del lacking["spec"]["lifecycle"]
    answer = await service.push("first", component("b"), lacking)
    assert answer.status_code == 200
    [warning] = answer.json()["warnings"]
    assert warning["path"] == "items[1].spec.lifecycle"
    assert warning["entityRef"] == "component:default/a"
    entity = await service.catalog("component:default/a")
    assert entity is not None
    [status] = entity["status"]["items"]
    assert status["level"] == "warning"
    assert status["message"] == warning["message"] == "spec.lifecycle is required for this kind"
    sound = await service.catalog("component:default/b")
    assert sound is not None
    assert "status" not in sound
    await service.push("first", component("b"), component("a"))
    mended = await service.catalog("component:default/a")
    assert mended is not None
    assert "status" not in mended


@pytest.mark.spec("validation.problem-in-warnings")
async def test_an_owner_that_can_be_no_reference_is_stored_with_a_warning(
    service: Service,
) -> None:
    for owner in ("a/", "x:", "nul\0", "line\nbreak", "é" * 3_000):
        answer = await service.push("first", component("a", owner=owner))
        assert answer.status_code == 200, answer.text
        [warning] = answer.json()["warnings"]
        assert warning["path"] == "items[0].spec.owner"
        entity = await service.catalog("component:default/a")
        assert entity is not None
        assert (entity["spec"]["owner"], entity["relations"]) == (owner, [])


@pytest.mark.spec("validation.read-entity-can-be-pushed-back")
async def test_an_entity_that_was_read_is_pushed_back_unchanged_with_warnings(
    service: Service,
) -> None:
    lacking = component("a", dependsOn=["component:b"])
    del lacking["spec"]["type"]
    pushed = await service.push("first", lacking, component("b"))
    read = [await service.catalog(f"component:default/{name}") for name in "ab"]
    assert all(read)
    answer = await service.push("first", *filter(None, read))
    assert answer.status_code == 200, answer.text
    assert answer.json()["changes"]["unchanged"] == 2
    assert answer.json()["items"] == pushed.json()["items"]
    told = {warning["path"] for warning in answer.json()["warnings"]}
    assert told >= {
        *("items[0].relations", "items[0].status", "items[0].metadata.uid"),
        *("items[0].metadata.etag", "items[1].metadata.uid", "items[1].relations"),
    }
    stolen: dict[str, Any] = component("b", owner="x")
    stolen["metadata"]["uid"] = pushed.json()["items"][0]["id"]
    [_, item] = (await service.push("first", lacking, stolen)).json()["items"]
    assert item["id"] == pushed.json()["items"][1]["id"]


@pytest.mark.spec("names.may-hold-spaces-and-printables")
async def test_a_name_is_trimmed_and_composed_and_asked_for_in_any_form(service: Service) -> None:
    decomposed = unicodedata.normalize("NFD", "Größe É")
    assert decomposed != "Größe É"
    [item] = (await service.push("first", resource(f"  {decomposed} "))).json()["items"]
    assert item["entity"]["metadata"]["name"] == "Größe É"
    assert item["entityRef"] == "resource:default/größe é"
    for name in (decomposed, "GRÖßE É", unicodedata.normalize("NFD", "größe é")):
        entity = await service.catalog(f"resource:default/{name}")
        assert entity is not None
        by_ref = await service.http.get(f"{PUSH}/entities/by-ref/resource:default/{name}")
        assert by_ref.json() == item
    again = await service.push("first", resource("Größe É"))
    assert again.json()["changes"]["unchanged"] == 1
    depending = component("user", dependsOn=[f"resource:{decomposed}"])
    await service.push("second", depending)
    entity = await service.catalog("resource:default/größe é")
    assert entity is not None
    assert {"type": "dependencyOf", "targetRef": "component:default/user"} in entity["relations"]


async def test_the_longest_names_are_stored_read_and_related(service: Service) -> None:
    names = ["x" * 253, "日" * 253, "İ" * 253]
    items = [resource(name, namespace="n" * 63) for name in names]
    answer = await service.push("first", *items)
    assert answer.status_code == 200, answer.text
    refs = [item["entityRef"] for item in answer.json()["items"]]
    [user] = (await service.push("second", component("user", dependsOn=refs))).json()["items"]
    for name, ref in zip(names, refs, strict=True):
        found = await service.http.get(f"{PUSH}/entities/by-ref/{ref}")
        assert found.json()["entity"]["metadata"]["name"] == name
        entity = await service.catalog(ref)
        assert entity is not None
        assert {"type": "dependencyOf", "targetRef": user["entityRef"]} in entity["relations"]


async def test_strict_names_refuse_what_the_catalog_api_refuses(start: StartService) -> None:
    service = await start(entity_names="strict")
    assert (await service.push("first", resource("Account_7.b-c"))).status_code == 200
    for name in ("Master Account", "ä", "x" * 64, "-a"):
        answer = await service.push("first", resource(name))
        assert answer.status_code == 400
        assert answer.json()["error"]["problems"][0]["path"] == "items[0].metadata.name"


async def test_large_random_input_is_never_more_than_a_refusal(service: Service) -> None:
    whole = json.dumps({"items": [component("a", owner="é\0")]}).encode()
    for end in range(0, len(whole), 7):
        for broken in (whole[:end], whole[:end] + b"\x00" + whole[end:], whole[:end] + b"\xff"):
            answer = await service.http.put(f"{PUSH}/sets/first", content=broken)
            assert answer.status_code == 400, broken
    assert await stored(service) == []
