"""Reading sets and pushed entities, and pushing entities one by one."""

from urllib.parse import quote

import pytest

from factbook.clock import HOUR
from tests.service import PUSH, Service, component, resource


@pytest.mark.spec("sets.list")
async def test_the_list_of_sets_tells_size_revision_user_and_time_of_each(service: Service) -> None:
    await service.push("b", component("one"), component("two"))
    await service.push("a", component("three"))
    service.time.advance(HOUR)
    await service.push("b", component("one"), component("two"), component("four"))
    first = {"updatedBy": "user:default/tester", "updatedAt": "2026-11-21T12:00:00.000+00:00"}
    later = first | {"updatedAt": "2026-11-21T13:00:00.000+00:00"}
    assert (await service.http.get(f"{PUSH}/sets")).json() == {
        "sets": [
            {"id": "a", "itemCount": 1, "revision": 1} | first,
            {"id": "b", "itemCount": 3, "revision": 2} | later,
        ]
    }


@pytest.mark.spec("sets.get", "guard.etag")
async def test_a_set_is_read_as_its_push_answered_it(service: Service) -> None:
    pushed = await service.push("first", component("b"), resource("Master Account"), component("a"))
    read = await service.http.get(f"{PUSH}/sets/first")
    assert read.json() == {
        "set": "first",
        "revision": pushed.json()["revision"],
        "items": pushed.json()["items"],
    }
    assert read.headers["etag"] == pushed.headers["etag"] == '"1"'


@pytest.mark.spec("sets.get-pages")
async def test_a_set_is_read_in_pages(service: Service) -> None:
    sent = [f"c{number}" for number in range(7)]
    await service.push("first", component("gone"), *map(component, sent))
    await service.push("first", *map(component, sent))
    seen: list[str] = []
    query = {"limit": "3"}
    for _ in range(3):
        page = (await service.http.get(f"{PUSH}/sets/first", params=query)).json()
        assert len(page["items"]) <= 3
        assert (page["set"], page["revision"]) == ("first", 2)
        seen += [item["entity"]["metadata"]["name"] for item in page["items"]]
        query = {"limit": "3", "cursor": page.pop("nextCursor", "none")}
    assert (seen, query["cursor"]) == (sent, "none")
    exact = (await service.http.get(f"{PUSH}/sets/first", params={"limit": "7"})).json()
    assert "nextCursor" not in exact
    for query in ({"limit": "0"}, {"limit": "x"}, {"cursor": "x"}, {"cursor": "-1"}, {"page": "2"}):
        answer = await service.http.get(f"{PUSH}/sets/first", params=query)
        assert answer.status_code == 400, query


@pytest.mark.spec("entities.list-of-a-set", "entities.outside-any-set")
async def test_pushed_entities_are_listed_of_one_set_or_all(service: Service) -> None:
    await service.push("a", component("z"), component("y"))
    await service.push("b", component("x"))
    alone = await service.http.post(f"{PUSH}/entities", json=component("alone"))
    assert alone.status_code == 200, alone.text
    assert alone.json()["set"] is None

    async def listed(**query: str) -> list[tuple[str, str | None]]:
        items = (await service.http.get(f"{PUSH}/entities", params=query)).json()["items"]
        return [(item["entity"]["metadata"]["name"], item["set"]) for item in items]

    assert await listed(set="a") == [("z", "a"), ("y", "a")]
    assert await listed(set="none") == []
    assert await listed() == [("alone", None), ("x", "b"), ("y", "a"), ("z", "a")]
    assert (await service.http.get(f"{PUSH}/entities?sets=a")).status_code == 400


@pytest.mark.spec("entities.outside-any-set")
async def test_an_entity_outside_any_set_is_updated_and_owned_by_none(service: Service) -> None:
    first = (await service.http.post(f"{PUSH}/entities", json=component("alone"))).json()
    annotations = first["entity"]["metadata"]["annotations"]
    assert "factbook/entity-set" not in annotations
    assert len(annotations) == 2
    changed = await service.http.post(f"{PUSH}/entities", json=component("alone", owner="b"))
    assert changed.json()["id"] == first["id"]
    assert changed.json()["entity"]["spec"]["owner"] == "b"
    refused = await service.push("a", component("alone"))
    assert refused.status_code == 409
    assert refused.json()["error"]["conflicts"] == [
        {"entityRef": "component:default/alone", "owner": "no set"}
    ]
    taken = await service.push("a", component("alone"), onConflict="take")
    assert taken.json()["items"][0]["id"] == first["id"]
    back = await service.http.post(f"{PUSH}/entities?onConflict=take", json=component("alone"))
    assert (back.json()["id"], back.json()["set"]) == (first["id"], None)
    assert (await service.http.get(f"{PUSH}/sets")).json() == {"sets": []}


@pytest.mark.spec("entities.by-id", "entities.delete-by-id")
async def test_an_entity_is_read_and_deleted_by_its_id(service: Service) -> None:
    answer = await service.push("a", component("x"), component("y"))
    x, y = answer.json()["items"]
    assert (await service.http.get(f"{PUSH}/entities/{x['id']}")).json() == x
    gone = await service.http.delete(f"{PUSH}/entities/{x['id']}")
    assert (gone.status_code, gone.content) == (204, b"")
    assert (await service.http.get(f"{PUSH}/sets/a")).json()["items"] == [y]
    assert (await service.http.get(f"{PUSH}/sets")).json()["sets"][0]["itemCount"] == 1
    for method in ("GET", "DELETE"):
        for uid in (x["id"], "nonsense", "nul%00"):
            answer = await service.http.request(method, f"{PUSH}/entities/{uid}")
            assert answer.status_code == 404, (method, uid, answer.text)
    revisions = (await service.http.get(f"{PUSH}/sets/a/revisions")).json()["revisions"]
    assert revisions[0]["changes"] == {"added": 0, "updated": 0, "removed": 1, "unchanged": 1}


NAMES = ["Master Account", "100% done", "a%2Fb", "a+b & c?d#e", "Größe", "日本", "x;y=z", "ǅ"]


@pytest.mark.spec("entities.by-ref", "entities.by-ref-encoded-or-decoded")
async def test_by_ref_takes_the_reference_encoded_and_decoded(service: Service) -> None:
    pushed = await service.push("a", *(resource(name, namespace="ns") for name in NAMES))
    for name, item in zip(NAMES, pushed.json()["items"], strict=True):
        encoded_name = quote(name, safe="")
        location = item["entity"]["metadata"]["annotations"]["backstage.io/managed-by-location"]
        prefix, _, segment = location.rpartition("/")
        assert prefix == f"factbook-api:{PUSH}/entities/by-ref"
        for path in (
            segment,
            quote(f"resource:ns/{name}", safe=""),
            quote(item["entityRef"], safe=""),
            f"resource:ns/{encoded_name}",
            f"Resource:NS/{encoded_name.lower()}",
            f"resource%3Ans/{encoded_name}",
        ):
            found = await service.http.get(f"{PUSH}/entities/by-ref/{path}")
            assert found.status_code == 200, (path, found.text)
            assert found.json() == item


async def test_by_ref_of_what_is_not_there_or_no_reference(service: Service) -> None:
    for path, status in (
        ("component:default/nobody", 404),
        ("api:nobody", 404),
        ("nobody", 400),
        ("component:/x", 400),
        ("component:default%2Fnul%00", 400),
        ("component:default%2F" + "x" * 2_000, 400),
    ):
        answer = await service.http.get(f"{PUSH}/entities/by-ref/{path}")
        assert answer.status_code == status, (path, answer.text)


@pytest.mark.spec("sets.add-one-entity")
async def test_a_post_adds_or_updates_one_entity_of_a_set_and_leaves_the_others(
    service: Service,
) -> None:
    [a, b] = (await service.push("first", component("a"), component("b"))).json()["items"]
    service.time.advance(HOUR)
    added = await service.http.post(f"{PUSH}/sets/first", json=component("c"))
    assert added.status_code == 200, added.text
    changed = await service.http.post(f"{PUSH}/sets/first", json=component("a", owner="b"))
    assert changed.json()["id"] == a["id"]
    read = (await service.http.get(f"{PUSH}/sets/first")).json()
    assert read["items"] == [changed.json(), b, added.json()]
    assert read["revision"] == 3
    again = await service.http.post(f"{PUSH}/sets/first", json=component("c"))
    assert again.json() == added.json()
    assert (await service.http.get(f"{PUSH}/sets/first")).json()["revision"] == 3
    fresh = await service.http.post(f"{PUSH}/sets/second", json=component("d"))
    assert fresh.json()["set"] == "second"


async def test_a_post_of_a_bad_or_foreign_entity_writes_nothing(service: Service) -> None:
    await service.push("first", component("a"))
    before = (await service.http.get(f"{PUSH}/entities")).json()
    for path in ("/sets/second", "/entities"):
        for body, status in (
            (b"", 400),
            (b"[]", 400),
            (b'{"items":[]}', 400),
            (b"{nonsense", 400),
            (b'{"apiVersion":"v1","kind":"X","metadata":{"name":"\xff"}}', 400),
        ):
            answer = await service.http.post(PUSH + path, content=body)
            assert answer.status_code == status, (path, body, answer.text)
        answer = await service.http.post(PUSH + path, json=component("A"))
        assert answer.status_code == 409
        assert answer.json()["error"]["conflicts"][0]["owner"] == "first"
        answer = await service.http.post(PUSH + path, json={"metadata": {"labels": {"a": 1}}})
        problems = answer.json()["error"]["problems"]
        assert {problem["path"] for problem in problems} == {
            *("apiVersion", "kind", "metadata.name", "metadata.labels.a"),
        }  # fmt: skip
    assert (await service.http.get(f"{PUSH}/entities")).json() == before


@pytest.mark.spec("sets.delete")
async def test_deleting_a_set_is_a_push_of_no_items(service: Service) -> None:
    for name in ("deleted", "emptied"):
        await service.push(name, component(f"{name}-a"), component(f"{name}-b"))
    deleted = await service.http.delete(f"{PUSH}/sets/deleted")
    emptied = await service.push("emptied")
    assert deleted.json() == emptied.json() | {"set": "deleted"}
    assert deleted.status_code == 200
    assert deleted.headers["etag"] == '"2"'
    assert await service.catalog("component:default/deleted-a") is None
    histories = [
        (await service.http.get(f"{PUSH}/sets/{name}/revisions")).json()
        for name in ("deleted", "emptied")
    ]
    assert histories[0] == histories[1]
    assert (await service.http.delete(f"{PUSH}/sets/never")).status_code == 200


async def test_a_post_answers_with_warnings_about_what_it_ignored(service: Service) -> None:
    entity = component("a") | {"status": {}}
    answer = await service.http.post(f"{PUSH}/sets/first", json=entity)
    [warning] = answer.json()["warnings"]
    assert warning["path"] == "status"
    assert warning["entityRef"] == "component:default/a"


async def test_a_delete_of_a_set_can_be_tried_first(service: Service) -> None:
    await service.push("first", component("a"))
    tried = await service.http.delete(f"{PUSH}/sets/first", params={"dryRun": "true"})
    assert tried.json()["difference"] == [{"entityRef": "component:default/a", "change": "removed"}]
    assert await service.catalog("component:default/a") is not None
