"""The client's pushes, and its reading, deleting and restoring of sets."""

import httpx2
import msgspec
import pytest

from factbook.client import ApiError, Client
from tests.cli.fake_server import FakeServer, component, pushed, rehearsed

SETS = "/api/catalog/factbook-entities/sets"
CHANGES = {"added": 1, "updated": 2, "removed": 3, "unchanged": 4}


def test_a_push_sends_its_entities_and_reads_what_changed(
    server: FakeServer, client: Client
) -> None:
    server.on("PUT", f"{SETS}/services", pushed("a", "b"))
    answer = client.push("services", (component(name) for name in "ab"))
    assert server.sent() == {"items": [component("a"), component("b")]}
    assert server.last.headers["authorization"] == "Bearer fbk_secret"
    assert server.last.headers["content-type"] == "application/json"
    assert [item.entity_ref for item in answer.items] == [
        "component:default/a",
        "component:default/b",
    ]
    assert (answer.changes.added, answer.revision, answer.dry_run) == (2, 1, False)


def test_a_push_takes_entities_that_are_json_already(server: FakeServer, client: Client) -> None:
    server.on("PUT", f"{SETS}/services", pushed("a"))
    client.push("services", [msgspec.Raw(msgspec.json.encode(component("a")))])
    assert server.sent() == {"items": [component("a")]}


def test_the_options_of_a_push_are_sent(server: FakeServer, client: Client) -> None:
    server.on("PUT", f"{SETS}/services", pushed())
    client.push("services", [], dry_run=True, on_conflict="take", max_removals="10%", if_match=7)
    assert dict(server.last.url.params) == {
        "dryRun": "true",
        "onConflict": "take",
        "maxRemovals": "10%",
    }
    assert server.last.headers["if-match"] == '"7"'


def test_a_plain_push_sends_no_options(server: FakeServer, client: Client) -> None:
    server.on("PUT", f"{SETS}/services", pushed())
    client.push("services", [])
    assert server.last.url.query == b""
    assert "if-match" not in server.last.headers


def test_a_dry_run_tells_the_difference(server: FakeServer, client: Client) -> None:
    server.on("PUT", f"{SETS}/services", rehearsed("a"))
    answer = client.push("services", [component("a")], dry_run=True)
    assert (answer.dry_run, answer.items) == (True, [])
    (difference,) = answer.difference or []
    assert (difference.entity_ref, difference.change) == ("component:default/a", "added")


def test_a_set_id_is_one_segment_of_the_path(server: FakeServer, client: Client) -> None:
    server.on("PUT", f"{SETS}/eu%2Fwest%20%7Bword%7D%3F", pushed())
    assert client.push("eu/west {word}?", []).revision == pushed()["revision"]


def test_the_push_word_can_be_another(server: FakeServer) -> None:
    server.on("GET", "/api/catalog/acme-entities/sets", {"sets": []})
    client = Client(
        "http://factbook.test", push_word="acme", transport=httpx2.MockTransport(server)
    )
    assert client.sets() == []


def test_sets_are_listed(server: FakeServer, client: Client) -> None:
    row = {"id": "s", "itemCount": 3, "revision": 2, "updatedBy": "user:default/a"}
    server.on("GET", SETS, {"sets": [{**row, "updatedAt": "now"}]})
    (summary,) = client.sets()
    assert (summary.id, summary.item_count, summary.revision) == ("s", 3, 2)


def test_a_set_is_read_page_by_page(server: FakeServer, client: Client) -> None:
    server.on("GET", f"{SETS}/services", pushed("a", nextCursor="more"))
    page = client.set("services", limit=1, cursor="start")
    assert dict(server.last.url.params) == {"limit": "1", "cursor": "start"}
    assert (page.items[0].id, page.next_cursor) == ("id-of-a", "more")


def test_a_set_is_deleted(server: FakeServer, client: Client) -> None:
    server.on("DELETE", f"{SETS}/services", pushed(changes=CHANGES))
    assert client.delete_set("services").changes.removed == 3


def test_revisions_are_listed_and_restored(server: FakeServer, client: Client) -> None:
    row = {"revision": 4, "createdBy": "user:default/a", "createdAt": "now", "changes": CHANGES}
    server.on("GET", f"{SETS}/services/revisions", {"revisions": [{**row, "restored": 2}]})
    server.on("POST", f"{SETS}/services/revisions/4/restore", pushed("a", revision=5))
    (revision,) = client.revisions("services")
    assert (revision.changes.updated, revision.restored) == (2, 2)
    assert client.restore("services", revision.revision).revision == 5


@pytest.mark.parametrize("name", [".", ".."])
def test_a_set_of_dots_is_asked_for_by_its_own_address(
    server: FakeServer, client: Client, name: str
) -> None:
    with pytest.raises(ApiError):
        client.delete_set(name)
    assert server.last.url.raw_path.decode().endswith("/sets/" + name.replace(".", "%2E"))
