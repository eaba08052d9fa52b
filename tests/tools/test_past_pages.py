"""Pages of get-fact-history and of get-changed-facts: everything once, no page too long."""

import json
from typing import Any

import pytest

from factbook.clock import DAY, HOUR, MINUTE, iso
from factbook.facts import history
from tests.service import NOON, Service, component
from tests.tools import past
from tests.tools.checks import structured
from tests.tools.sources import TREE, record

HISTORY = "get-fact-history"
CHANGES = "get-changed-facts"
PAYMENTS = "component:default/payments"
ORDERS = "component:default/orders"
ACCOUNT = "resource:default/account"
ALL = {"since": "1970-01-01"}


async def ask(service: Service, tool: str, **arguments: Any) -> dict[str, Any]:
    return structured(tool, await service.ask(tool, **arguments))


async def rows(service: Service, **arguments: Any) -> list[dict[str, Any]]:
    """The rows of a page that is the only one."""
    found = await ask(service, HISTORY, name="payments", **arguments)
    assert "nextCursor" not in found
    listed: list[dict[str, Any]] = found["history"]
    return listed


async def changes(service: Service, **arguments: Any) -> list[dict[str, Any]]:
    """The changes of a page that is the only one."""
    found = await ask(service, CHANGES, **arguments)
    assert "nextCursor" not in found
    listed: list[dict[str, Any]] = found["changes"]
    return listed


# Of history


@pytest.mark.slow
@pytest.mark.spec("tools.history-and-changes.pages")
async def test_all_rows_are_walked_without_a_repeat_or_a_gap(recording: Service) -> None:
    entity_id, other = await past.id_of(recording, PAYMENTS), await past.id_of(recording, ORDERS)
    # Two sources write at the same moments, together more than one statement reads.
    count = history.ROWS_SCANNED // 2 + 100
    keys = [(source, time) for time in range(count) for source in ("coverage", "tree")]
    await past.write(
        recording,
        [
            (source, entity, NOON + time * MINUTE, {"stars": time})
            for entity in (entity_id, other)
            for source, time in keys
        ],
    )
    walked: list[tuple[str, int]] = []
    calls = 0
    async for page in past.pages(recording, HISTORY, name="payments", limit=200):
        calls += 1
        assert len(page["history"]) == 200
        walked += [(one["dataSourceId"], one["facts"]["stars"]) for one in page["history"]]
    assert calls == len(keys) / 200
    assert walked == sorted(keys, key=lambda key: (key[1], key[0]), reverse=True)


@pytest.mark.spec("tools.history-and-changes.pages")
async def test_pages_of_any_size_walk_everything_once(recording: Service) -> None:
    entity_id = await past.id_of(recording, PAYMENTS)
    await past.write(
        recording,
        [
            (source, entity_id, NOON + time, {"stars": time})
            for time in range(7)
            for source in ("coverage", "tree")
        ],
    )
    for narrowed, count in (({}, 14), ({"dataSourceId": "tree"}, 7), ({"facts": ["stars"]}, 7)):
        whole = await rows(recording, **narrowed)
        assert len(whole) == count
        for limit in range(1, count + 2):
            asked = past.pages(recording, HISTORY, name="payments", limit=limit, **narrowed)
            walked = [page["history"] async for page in asked]
            assert [one for page in walked for one in page] == whole
            assert len(walked) == -(-count // limit)


@pytest.mark.spec("tools.history-and-changes.pages")
async def test_without_a_limit_a_page_has_twenty_rows(recording: Service) -> None:
    entity_id = await past.id_of(recording, PAYMENTS)
    await past.write(
        recording, [("tree", entity_id, NOON + time, {"stars": 1}) for time in range(21)]
    )
    found = [page async for page in past.pages(recording, HISTORY, name="payments")]
    assert [len(page["history"]) for page in found] == [20, 1]


@pytest.mark.spec("tools.history-and-changes.pages")
async def test_a_page_of_long_rows_ends_early_and_loses_none(recording: Service) -> None:
    entity_id = await past.id_of(recording, PAYMENTS)
    long = {"repo.about": "x" * 4_000, "repo.files": [f"{number:030}" for number in range(400)]}
    await past.write(
        recording,
        [("tree", entity_id, NOON + time, {**long, "stars": time}) for time in range(200)],
    )
    asked = past.pages(recording, HISTORY, name="payments", limit=200)
    found = [page async for page in asked]
    assert len(found) > 2
    assert all(len(json.dumps(page, separators=(",", ":"))) < 50_200 for page in found)
    assert [one["facts"]["stars"] for page in found for one in page["history"]] == [
        *range(199, -1, -1)
    ]


@pytest.mark.spec("tools.history-and-changes.pages")
async def test_what_is_written_meanwhile_does_not_move_the_next_page(recording: Service) -> None:
    for hour in range(4):
        await record(recording, PAYMENTS, {"lines": hour})
        recording.time.advance(HOUR)
    first = await ask(recording, HISTORY, name="payments", limit=2)
    await record(recording, PAYMENTS, {"lines": 99})
    rest = await ask(recording, HISTORY, name="payments", limit=2, cursor=first["nextCursor"])
    assert [one["facts"]["lines"] for one in rest["history"]] == [1, 0]
    assert "nextCursor" not in rest


async def test_a_cursor_by_hand_only_says_where_to_go_on(recording: Service) -> None:
    await record(recording, PAYMENTS, {"lines": 1})
    await record(recording, ORDERS, {"lines": 2})
    for cursor, count in ((f"{'9' * 16}/zzz", 1), ("0/a", 0), (f"{NOON}/coverage", 0)):
        assert len(await rows(recording, cursor=cursor)) == count
    early = {"cursor": f"{'9' * 16}/zzz", "to": "2026-11-20"}
    assert await rows(recording, **early) == []


@pytest.mark.spec("tools.history-and-changes.pages")
async def test_a_row_that_is_too_long_for_any_page_has_one_of_its_own(recording: Service) -> None:
    entity_id = await past.id_of(recording, PAYMENTS)
    long = {f"fact-{number}": "x" * 400 for number in range(200)}
    await past.write(recording, [("tree", entity_id, NOON + time, long) for time in range(3)])
    found = [page async for page in past.pages(recording, HISTORY, name="payments")]
    assert [[row["timestamp"] for row in page["history"]] for page in found] == [
        [iso(NOON + time)] for time in (2, 1, 0)
    ]
    assert all(row["facts"] == long for page in found for row in page["history"])


# Of changes


@pytest.mark.slow
@pytest.mark.spec("tools.history-and-changes.pages")
async def test_all_changes_are_walked_without_a_repeat_or_a_gap(recording: Service) -> None:
    names = [f"part-{number:02}" for number in range(12)]
    await recording.push("parts", *(component(name) for name in names))
    ids = {await past.id_of(recording, f"component:default/{name}"): name for name in names}
    start = NOON - DAY
    # Two sources write about everything at the same moments; the first time changes nothing.
    await past.write(
        recording,
        [
            (source, entity_id, start + time, {"stars": time})
            for time in range(101)
            for source in ("coverage", "tree")
            for entity_id in ids
        ],
    )
    expected = [
        (iso(start + time), source, f"component:default/{ids[entity_id]}", time)
        for time in range(1, 101)
        for source in ("coverage", "tree")
        for entity_id in sorted(ids)
    ]
    walked: list[tuple[str, str, str, int]] = []
    async for page in past.pages(recording, CHANGES, since="1d", limit=200):
        for one in page["changes"]:
            if one["dataSourceId"] == "catalog":  # what was pushed for this test
                continue
            values = one["facts"]["stars"]
            assert values["from"] == values["to"] - 1
            told = (one["timestamp"], one["dataSourceId"], one["entityRef"], values["to"])
            walked.append(told)
    assert len(walked) == 2_400 > history.ROWS_SCANNED
    assert walked == expected


@pytest.mark.slow
@pytest.mark.both_databases
@pytest.mark.spec("tools.history-and-changes.pages")
async def test_pages_of_any_size_walk_every_change_once(recording: Service) -> None:
    for number in range(4):
        for ref in (PAYMENTS, ORDERS, ACCOUNT):
            await record(recording, ref, {"lines": number})
            await record(recording, ref, {"stars": number}, TREE)
        recording.time.advance(HOUR)
    for narrowed, count in (
        (ALL, 18),
        ({**ALL, "dataSourceId": "tree"}, 9),
        ({**ALL, "kind": "resource"}, 6),
        ({"since": "2026-11-21T14:30:00Z"}, 6),
    ):
        whole = await changes(recording, **narrowed)
        assert len(whole) == count
        for limit in range(1, count + 2):
            walked = [
                page["changes"]
                async for page in past.pages(recording, CHANGES, **narrowed, limit=limit)
            ]
            assert [one for page in walked for one in page] == whole
            assert max(map(len, walked)) <= limit


@pytest.mark.spec("tools.history-and-changes.pages")
async def test_a_rare_change_is_found_among_very_many_rows(recording: Service) -> None:
    entity_id, other = await past.id_of(recording, PAYMENTS), await past.id_of(recording, ACCOUNT)
    count = 3 * history.ROWS_SCANNED
    same = [("tree", entity_id, NOON + time, {"stars": 1}) for time in range(count)]
    rare = [("tree", other, NOON + time, {"stars": time}) for time in (0, count - 1)]
    await past.write(recording, [*same, *rare])
    recording.time.advance(HOUR)
    found = [page async for page in past.pages(recording, CHANGES, **ALL)]
    assert len(found) < 5
    assert [one["facts"] for page in found for one in page["changes"]] == [
        {"stars": {"from": 0, "to": count - 1}}
    ]


@pytest.mark.spec("tools.history-and-changes.pages")
async def test_a_page_of_long_changes_ends_early_and_loses_none(recording: Service) -> None:
    entity_id = await past.id_of(recording, PAYMENTS)
    await past.write(
        recording,
        [
            ("tree", entity_id, NOON - time, {"repo.about": f"{time:04}" * 200, "stars": time})
            for time in range(201)
        ],
    )
    found = [page async for page in past.pages(recording, CHANGES, **ALL, limit=200)]
    assert len(found) > 2
    assert all(len(json.dumps(page, separators=(",", ":"))) < 50_200 for page in found)
    assert [one["facts"]["stars"]["to"] for page in found for one in page["changes"]] == [
        *range(199, -1, -1)
    ]


@pytest.mark.spec("tools.history-and-changes.pages")
async def test_pages_go_on_while_time_and_writing_go_on(recording: Service) -> None:
    for number in range(4):
        await record(recording, PAYMENTS, {"lines": number})
        recording.time.advance(HOUR)
    first = await ask(recording, CHANGES, since="4h", limit=2)
    assert [one["facts"]["lines"]["to"] for one in first["changes"]] == [1, 2]
    await record(recording, PAYMENTS, {"lines": 4})
    recording.time.advance(MINUTE)
    rest = await ask(recording, CHANGES, since="4h", limit=2, cursor=first["nextCursor"])
    assert [one["facts"]["lines"]["to"] for one in rest["changes"]] == [3, 4]
    assert "nextCursor" not in rest


@pytest.mark.spec("tools.history-and-changes.pages")
async def test_a_cursor_by_hand_brings_nothing_from_before_since(recording: Service) -> None:
    for number in range(3):
        await record(recording, PAYMENTS, {"lines": number})
        recording.time.advance(HOUR)
    since = {"since": "2026-11-21T13:30:00Z"}
    assert len(await changes(recording, **since)) == 1
    for cursor, count in (("0/a/0", 1), (f"{NOON}/zzz/{'9' * 18}", 1), (f"{'9' * 16}/a/0", 0)):
        assert len(await changes(recording, **since, cursor=cursor)) == count
