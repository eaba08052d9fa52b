"""The path of the push interface and the words in it."""

import json
from urllib.parse import quote

import pytest

from tests.conftest import StartService
from tests.service import PUSH, Service, component, resource

LOCATION = "backstage.io/managed-by-location"
ORIGIN = "backstage.io/managed-by-origin-location"


@pytest.mark.spec("push.path", "push.creates-the-set")
async def test_a_put_to_an_unused_set_id_makes_the_set(service: Service) -> None:
    assert (await service.http.get(f"{PUSH}/sets/first")).status_code == 404
    answer = await service.http.put(
        "/api/catalog/factbook-entities/sets/first", json={"items": [component("a")]}
    )
    assert answer.status_code == 200, answer.text
    assert (await service.http.get(f"{PUSH}/sets/first")).json()["set"] == "first"


@pytest.mark.spec("push.set-id-is-the-clients", "limits.set-id-is-400")
async def test_a_set_id_is_any_printable_text_and_comes_back_unchanged(service: Service) -> None:
    chosen = ["cloud accounts (EU)", "Größe", "a.b:c@d", "100%", " padded ", "x" * 128]
    for number, set_id in enumerate(chosen):
        answer = await service.push(quote(set_id, safe=""), component(f"c{number}"))
        assert answer.status_code == 200, answer.text
        assert answer.json()["set"] == answer.json()["items"][0]["set"] == set_id
    listed = (await service.http.get(f"{PUSH}/sets")).json()["sets"]
    assert [item["id"] for item in listed] == sorted(chosen)


@pytest.mark.spec("limits.set-id-is-400")
async def test_a_set_id_that_is_empty_too_long_unprintable_or_slashed_is_refused(
    service: Service,
) -> None:
    for set_id in ("", "x" * 129, "bell\a", "line\n", "nul\0", "zero\u200b", "a/b", "/"):
        answer = await service.push(quote(set_id, safe=""), component("a"))
        assert answer.status_code == 400, (set_id, answer.text)
        assert "1 to 128 printable characters" in answer.json()["error"]["message"]
    assert (await service.http.get(f"{PUSH}/sets")).json() == {"sets": []}


@pytest.mark.spec("push.word-is-a-setting", "push.annotations-carry-the-configured-word")
async def test_the_push_word_changes_the_path_and_the_annotations(start: StartService) -> None:
    service = await start(push_word="widget")
    put = "/api/catalog/widget-entities/sets/first"
    answer = await service.http.put(put, json={"items": [resource("Master Account")]})
    assert answer.status_code == 200, answer.text
    annotations = answer.json()["items"][0]["entity"]["metadata"]["annotations"]
    path = "/api/catalog/widget-entities/entities"
    assert annotations[ORIGIN] == f"widget-api:{path}"
    by_ref = f"{path}/by-ref/resource%3Adefault%2Fmaster%20account"
    assert annotations[LOCATION] == f"widget-api:{by_ref}"
    assert (await service.http.get(by_ref)).json()["id"] == answer.json()["items"][0]["id"]
    assert (await service.push("first", component("a"))).status_code == 404


@pytest.mark.spec("push.aliases")
async def test_aliases_reach_the_same_sets_and_there_are_none_at_first(
    start: StartService, service: Service
) -> None:
    other = "/api/catalog/widget-entities/sets/first"
    assert (await service.http.put(other, json={"items": []})).status_code == 404
    aliased = await start(push_aliases=["widget", "gadget"])
    answer = await aliased.http.put(other, json={"items": [component("a")]})
    assert answer.status_code == 200, answer.text
    annotations = answer.json()["items"][0]["entity"]["metadata"]["annotations"]
    assert annotations[ORIGIN] == "factbook-api:/api/catalog/factbook-entities/entities"
    for word in ("gadget", "factbook"):
        found = await aliased.http.get(f"/api/catalog/{word}-entities/sets/first")
        assert found.json()["items"] == answer.json()["items"]


@pytest.mark.spec("push.foreign-word-is-404")
async def test_another_word_is_not_found_and_the_right_path_is_told(service: Service) -> None:
    answer = await service.http.put("/api/catalog/widget-entities/sets/a", json={"items": []})
    assert answer.status_code == 404
    assert "/api/catalog/factbook-entities" in answer.json()["error"]["message"]


@pytest.mark.spec("push.annotation-domain-is-a-setting", "annotations.entity-set")
async def test_the_annotation_domain_prefixes_the_annotation_of_the_set(
    start: StartService, service: Service
) -> None:
    for running, domain in (
        (service, "factbook"),
        (await start(annotation_domain="a.org"), "a.org"),
    ):
        answer = await running.push(f"set of {domain}", component(domain))
        annotations = answer.json()["items"][0]["entity"]["metadata"]["annotations"]
        assert annotations[f"{domain}/entity-set"] == f"set of {domain}"
        assert len(annotations) == 3


@pytest.mark.spec("permissions.set-write-guards-the-push")
async def test_writing_takes_a_permission_that_reading_does_not(service: Service) -> None:
    [item] = (await service.push("first", component("a"))).json()["items"]
    body: dict[str, object] = {"items": []}
    calls = [
        ("PUT", "/sets/first", body),
        ("POST", "/sets/first", component("b")),
        ("DELETE", "/sets/first", None),
        ("POST", "/sets/first/revisions/1/restore", None),
        ("POST", "/entities", component("b")),
        ("DELETE", f"/entities/{item['id']}", None),
        ("PUT", "/sets/a%2Fb", body),
    ]
    async with service.client(await service.token("catalog.entity.read")) as reader:
        for method, path, sent in calls:
            answer = await reader.request(method, PUSH + path, json=sent)
            assert answer.status_code == 403, (method, path)
            assert "catalog.entity-set.write" in answer.json()["error"]["message"]
        assert (await reader.get(f"{PUSH}/sets/first")).json()["items"] == [item]
    async with service.client(None) as anonymous:
        assert (await anonymous.put(f"{PUSH}/sets/first", json=body)).status_code == 401


@pytest.mark.spec("push.as-the-seed-writes-it", "auth.bearer-token-on-both-interfaces")
async def test_the_seeds_headers_and_a_body_of_items_push_a_set(service: Service) -> None:
    token = await service.token(name="seed")
    body = json.dumps({"items": [resource("Master Account")]}).encode()
    async with service.client(None) as client:
        for scheme in ("Bearer", "bearer"):
            answer = await client.put(
                f"{PUSH}/sets/cloud-accounts",
                content=body,
                headers={
                    "Content-Type": "application/json",
                    "Content-Length": str(len(body)),
                    "Authorization": f"{scheme} {token}",
                },
            )
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"].startswith("application/json")
            assert answer.json()["set"] == "cloud-accounts"
            assert answer.json()["items"][0]["entityRef"] == "resource:default/master account"
