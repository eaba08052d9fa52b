"""Revisions: what each push changed, and putting an earlier content back."""

import random
from typing import Any

import pytest

from factbook import worker
from factbook.clock import DAY, HOUR
from tests.conftest import StartService
from tests.service import PUSH, Service, component, resource


async def restored(service: Service, number: int, set_id: str = "first") -> dict[str, Any]:
    """The answer to a restore that succeeds."""
    answer = await service.http.post(f"{PUSH}/sets/{set_id}/revisions/{number}/restore")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def numbers(service: Service, set_id: str = "first") -> list[int]:
    """The revisions that are kept, newest first."""
    answer = await service.http.get(f"{PUSH}/sets/{set_id}/revisions")
    return [revision["revision"] for revision in answer.json()["revisions"]]


async def sweep(service: Service) -> None:
    """What the worker does once in a while."""
    state = service.state
    sources = tuple(state.registry.fixed.sources.values())
    await worker.sweep(state.database, state.settings, sources, state.clock())


def content(body: dict[str, Any]) -> list[tuple[str, Any]]:
    """Id and document of each item, in their order."""
    return [(item["id"], item["entity"]) for item in body["items"]]


@pytest.mark.spec("sets.revisions")
async def test_revisions_say_who_changed_what_and_when_newest_first(service: Service) -> None:
    await service.push("first", component("a"), component("b"))
    service.time.advance(HOUR)
    async with service.client(await service.token(owner="user:default/another")) as another:
        body = {"items": [component("b", owner="x"), component("c")]}
        await another.put(f"{PUSH}/sets/first", json=body)
    service.time.advance(HOUR)
    await service.http.post(f"{PUSH}/sets/first", json=component("d"))
    await restored(service, 1)
    answer = await service.http.get(f"{PUSH}/sets/first/revisions")
    found = answer.json()["revisions"]
    assert [revision.pop("changes") for revision in found] == [
        {"added": 1, "updated": 1, "removed": 2, "unchanged": 0},
        {"added": 1, "updated": 0, "removed": 0, "unchanged": 2},
        {"added": 1, "updated": 1, "removed": 1, "unchanged": 0},
        {"added": 2, "updated": 0, "removed": 0, "unchanged": 0},
    ]
    tester, another_user = "user:default/tester", "user:default/another"
    at = "2026-11-21T{}:00:00.000+00:00".format
    assert found == [
        {"revision": 4, "createdBy": tester, "createdAt": at(14), "restored": 1},
        {"revision": 3, "createdBy": tester, "createdAt": at(14)},
        {"revision": 2, "createdBy": another_user, "createdAt": at(13)},
        {"revision": 1, "createdBy": tester, "createdAt": at(12)},
    ]
    assert (await service.http.get(f"{PUSH}/sets/never/revisions")).status_code == 404


@pytest.mark.spec("sets.restore")
async def test_restoring_puts_content_order_and_ids_back_under_a_new_number(
    service: Service,
) -> None:
    sent = [component("a"), resource("Master Account"), component("z"), component("m")]
    first = (await service.push("first", *sent)).json()
    await service.push("first", component("z", owner="x"))
    await service.push("first", component("new"), component("z"))
    answer = await restored(service, 1)
    assert answer["revision"] == 4
    assert answer["changes"] == {"added": 3, "updated": 0, "removed": 1, "unchanged": 1}
    assert content(answer) == content(first)
    read = (await service.http.get(f"{PUSH}/sets/first")).json()
    assert content(read) == content(first)
    back = await restored(service, 3)
    assert [item["entityRef"][-3:] for item in back["items"]] == ["new", "t/z"]


@pytest.mark.spec("sets.restore")
async def test_entities_removed_bit_by_bit_come_back_in_their_places(service: Service) -> None:
    history = [
        content((await service.push("first", *map(component, names))).json())
        for names in ("zaybxc", "yxc", "xc", "c", "cd", "d")
    ]
    for number in (3, 1, 4, 2, 5):
        await restored(service, number)
        assert content((await service.http.get(f"{PUSH}/sets/first")).json()) == history[number - 1]


@pytest.mark.both_databases
@pytest.mark.slow
@pytest.mark.spec("sets.restore")
async def test_any_kept_revision_of_a_long_history_comes_back_as_it_was(service: Service) -> None:
    chance = random.Random(11)
    pool = [f"n{number:02}" for number in range(12)]
    history: dict[int, list[tuple[str, Any]]] = {}
    for _ in range(15):
        chosen = sorted(chance.sample(pool, chance.randint(0, 8)))
        items = [component(name, owner=chance.choice("xyz")) for name in chosen]
        body = (await service.push("first", *items)).json()
        history[body["revision"]] = content(body)
    for number in chance.sample(sorted(history), 8):
        assert content(await restored(service, number)) == history[number]
        read = await service.http.get(f"{PUSH}/sets/first")
        assert read.status_code == (200 if history[number] else 404)
        if history[number]:
            assert content(read.json()) == history[number]


@pytest.mark.both_databases
@pytest.mark.spec("sets.empty-can-be-restored", "sets.empty-is-not-listed")
async def test_an_emptied_set_is_not_listed_and_can_be_restored(service: Service) -> None:
    first = (await service.push("first", component("b"), component("a"))).json()
    await service.http.delete(f"{PUSH}/sets/first")
    assert (await service.http.get(f"{PUSH}/sets")).json() == {"sets": []}
    assert await numbers(service) == [2, 1]
    assert content(await restored(service, 1)) == content(first)
    assert (await service.http.get(f"{PUSH}/sets")).json()["sets"][0]["itemCount"] == 2


@pytest.mark.spec("revisions.only-for-changes")
async def test_restoring_what_is_already_there_makes_no_revision(service: Service) -> None:
    await service.push("first", component("a"))
    await service.push("first", component("a"), component("b"))
    assert (await restored(service, 2))["revision"] == 2
    assert await numbers(service) == [2, 1]


async def test_what_cannot_be_restored_is_said(service: Service) -> None:
    await service.push("first", component("a"))
    for path, status in (
        ("first/revisions/0/restore", 404),
        ("first/revisions/2/restore", 404),
        ("never/revisions/1/restore", 404),
        ("first/revisions/one/restore", 400),
        ("first/revisions/-1/restore", 400),
        ("first/revisions/99999999999/restore", 404),
        ("first/revisions/999999999999/restore", 400),
    ):
        answer = await service.http.post(f"{PUSH}/sets/{path}")
        assert answer.status_code == status, (path, answer.text)


@pytest.mark.spec("revisions.store-changed-documents-only")
async def test_a_revision_stores_the_documents_that_changed_and_no_others(service: Service) -> None:
    names = [f"c{number}" for number in range(50)]
    await service.push("first", *map(component, names))
    await service.push("first", component("c0", owner="x"), *map(component, names[2:]))
    rows = await service.state.database.all(
        "SELECT number, ref, document IS NULL FROM revision_changes ORDER BY number, ref"
    )
    assert sum(row[0] == 1 for row in rows) == 50
    assert all(row[2] for row in rows if row[0] == 1)  # added: only their names
    assert [(row[1], bool(row[2])) for row in rows if row[0] == 2] == [
        ("component:default/c0", False),
        ("component:default/c1", False),
    ]


@pytest.mark.both_databases
@pytest.mark.spec("revisions.are-trimmed")
async def test_of_many_revisions_the_newest_are_kept_as_the_setting_says(
    start: StartService, service: Service
) -> None:
    assert service.state.settings.revisions_kept == 50
    few = await start(revisions_kept=3)
    for number in range(6):
        await few.push("first", component("a", owner=f"o{number}"))
    assert await numbers(few) == [6, 5, 4]
    assert (await few.http.post(f"{PUSH}/sets/first/revisions/3/restore")).status_code == 404
    assert (await restored(few, 4))["items"][0]["entity"]["spec"]["owner"] == "o3"
    [left] = await few.state.database.all("SELECT min(number) FROM revision_changes")
    assert left == (5,)


@pytest.mark.spec("revisions.are-trimmed")
async def test_revisions_go_when_they_were_replaced_too_many_days_ago(start: StartService) -> None:
    service = await start(revision_days=30)
    for number in range(3):
        await service.push("first", component("a", owner=f"o{number}"))
        service.time.advance(10 * DAY)
    service.time.advance(15 * DAY)  # 45, 35 and 25 days old
    await sweep(service)
    assert await numbers(service) == [3, 2]
    service.time.advance(365 * DAY)
    await sweep(service)
    assert await numbers(service) == [3]


@pytest.mark.spec("sets.empty-can-be-restored")
async def test_a_set_that_nobody_changed_for_months_can_still_be_restored(service: Service) -> None:
    first = (await service.push("first", component("a"), component("b"))).json()
    service.time.advance(90 * DAY)
    await sweep(service)
    await service.http.delete(f"{PUSH}/sets/first")
    await sweep(service)
    assert content(await restored(service, 1)) == content(first)
