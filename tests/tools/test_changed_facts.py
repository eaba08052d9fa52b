"""get-changed-facts: what changed since a time, of which entity, from what to what."""

from typing import Any

import pytest

from factbook.clock import DAY, HOUR, MINUTE, SECOND, iso
from factbook.facts.datasource import DataSource
from tests.api.defining import define, item, push, pushed
from tests.service import NOON, Service, component
from tests.tools import past
from tests.tools.checks import refusal, structured
from tests.tools.sources import COVERAGE, DRAFT, TREE, record

TOOL = "get-changed-facts"
PAYMENTS = "component:default/payments"
ORDERS = "component:default/orders"
ACCOUNT = "resource:default/account"
ALL = {"since": "1970-01-01"}


async def ask(service: Service, **arguments: Any) -> dict[str, Any]:
    return structured(TOOL, await service.ask(TOOL, **arguments))


async def changes(service: Service, **arguments: Any) -> list[dict[str, Any]]:
    found = await ask(service, **(arguments or ALL))
    assert "nextCursor" not in found
    listed: list[dict[str, Any]] = found["changes"]
    return listed


def change(
    source: DataSource, ref: str, time: int, facts: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """A change as it is shown, so many milliseconds after noon; of each fact from what to what."""
    return {
        "timestamp": iso(NOON + time),
        "dataSourceId": source.id,
        "version": source.version,
        "entityRef": ref,
        "facts": {
            name: dict(zip(("from", "to"), values, strict=True)) for name, values in facts.items()
        },
        **more,
    }


# What is a change


@pytest.mark.spec("tools.changed-facts.from-what-to-what")
async def test_each_change_tells_of_whom_and_when_and_from_what_to_what(recording: Service) -> None:
    await record(recording, PAYMENTS, {"lines": 100, "share": 0.5, "green": True})
    await record(recording, ORDERS, {"lines": 10})
    await record(recording, PAYMENTS, {"stars": 1}, TREE)
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"lines": 120, "share": 0.5, "green": False})
    await record(recording, ORDERS, {"lines": 10})
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"stars": 2}, TREE)
    await record(recording, ORDERS, {"lines": 11})
    await record(recording, PAYMENTS, {"lines": 100, "share": 0.5, "green": False})
    assert await ask(recording, since="2026-11-21") == {
        "since": "2026-11-21T00:00:00.000+00:00",
        "changes": [
            change(COVERAGE, PAYMENTS, HOUR, {"lines": (100, 120), "green": (True, False)}),
            change(COVERAGE, PAYMENTS, 2 * HOUR, {"lines": (120, 100)}),
            change(COVERAGE, ORDERS, 2 * HOUR, {"lines": (10, 11)}),
            change(TREE, PAYMENTS, 2 * HOUR, {"stars": (1, 2)}),
        ],
    }


@pytest.mark.spec("tools.changed-facts.became-unknown")
async def test_a_value_that_became_unknown_is_told_with_its_reason(recording: Service) -> None:
    await record(recording, PAYMENTS, {"lines": 100, "share": 0.5, "green": True})
    await record(recording, PAYMENTS, {"repo.about": "Pays.", "stars": 1}, TREE)
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"lines": 100, "green": True}, reasons={"share": "forbidden"})
    await record(recording, PAYMENTS, {"stars": 1}, TREE, {"repo": "not-found"})
    recording.time.advance(HOUR)
    # Another reason for what was unknown already is no change of the value.
    await record(recording, PAYMENTS, {"lines": 100, "green": True}, reasons={"share": "not-found"})
    await record(recording, PAYMENTS, {}, TREE, {"": "no-annotation"})
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"lines": "1", "share": 0.75, "green": True})
    assert await changes(recording) == [
        change(
            COVERAGE,
            PAYMENTS,
            HOUR,
            {"share": (0.5, None)},
            unknownReasons={"share": "forbidden"},
        ),
        change(
            TREE,
            PAYMENTS,
            HOUR,
            {"repo.about": ("Pays.", None)},
            unknownReasons={"repo.about": "not-found"},
        ),
        change(
            TREE,
            PAYMENTS,
            2 * HOUR,
            {"stars": (1, None)},
            unknownReasons={"stars": "no-annotation"},
        ),
        change(
            COVERAGE,
            PAYMENTS,
            3 * HOUR,
            {"share": (None, 0.75), "lines": (100, None)},
            unknownReasons={"lines": "upstream-error: expected an integer, not this string"},
        ),
    ]


@pytest.mark.spec("tools.changed-facts.kept-is-no-change")
async def test_a_value_that_was_kept_while_the_vendor_failed_did_not_change(
    recording: Service,
) -> None:
    await record(recording, PAYMENTS, {"lines": 100, "share": 0.5})
    for lines in (100, 101):
        recording.time.advance(HOUR)
        await past.fail(recording, PAYMENTS, {"lines": lines}, {"share": "rate-limited"})
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"lines": 101, "share": 0.5})
    recording.time.advance(HOUR)
    await past.fail(recording, PAYMENTS, {"lines": 101}, {"share": "upstream-error"})
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"lines": 101, "share": 0.25})
    assert await changes(recording) == [
        change(COVERAGE, PAYMENTS, 2 * HOUR, {"lines": (100, 101)}),
        # From what was kept, although the row before does not have it.
        change(COVERAGE, PAYMENTS, 5 * HOUR, {"share": (0.5, 0.25)}),
    ]


@pytest.mark.spec("tools.changed-facts.from-what-to-what")
async def test_the_first_that_a_source_says_of_an_entity_is_no_change(recording: Service) -> None:
    await record(recording, PAYMENTS, {"lines": 100})
    await record(recording, PAYMENTS, {"stars": 1}, TREE)
    assert await changes(recording) == []
    recording.time.advance(HOUR)
    await record(recording, ORDERS, {"lines": 100})
    assert await changes(recording) == []


@pytest.mark.spec("tools.changed-facts.from-what-to-what")
async def test_no_value_is_not_the_word_null_or_unknown(recording: Service) -> None:
    for about in ("unknown", "null", ""):
        await record(recording, PAYMENTS, {"repo.about": about}, TREE)
        recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {}, TREE, {"repo.about": "not-applicable"})
    found = await changes(recording)
    assert [one["facts"]["repo.about"] for one in found] == [
        {"from": "unknown", "to": "null"},
        {"from": "null", "to": ""},
        {"from": "", "to": None},
    ]
    assert [one.get("unknownReasons") for one in found] == [
        None,
        None,
        {"repo.about": "not-applicable"},
    ]


@pytest.mark.spec("tools.history-and-changes.long-values")
async def test_of_long_lists_it_tells_what_came_and_what_went(recording: Service) -> None:
    files = [f"src/part-{number:04}.py" for number in range(1_000)]
    await record(recording, PAYMENTS, {"repo.files": files}, TREE)
    recording.time.advance(HOUR)
    now = [*files[1:500], *files[501:], "README.md"]
    await record(recording, PAYMENTS, {"repo.files": now}, TREE)
    [found] = await changes(recording)
    told = found["facts"]["repo.files"]
    # Into 400 characters go 21 paths of 19 with quotes and comma.
    assert told == {
        "from": files[:21],
        "to": now[:21],
        "added": ["README.md"],
        "removed": ["src/part-0000.py", "src/part-0500.py"],
        "cut": {"from": 1_000, "to": 999},
    }
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"repo.files": []}, TREE)
    [told] = [one["facts"]["repo.files"] for one in (await changes(recording))[1:]]
    assert told == {
        "from": now[:21],
        "to": [],
        "added": [],
        "removed": now[:21],
        "cut": {"from": 999, "removed": 999},
    }


@pytest.mark.spec("tools.history-and-changes.long-values")
async def test_other_long_values_are_cut_short_and_counted(recording: Service) -> None:
    owners = {f"team-{number:03}": number for number in range(100)}
    await record(recording, PAYMENTS, {"repo.about": "a" * 401, "repo.owners": owners}, TREE)
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"repo.about": "short", "repo.owners": {"team-000": 1}}, TREE)
    [found] = await changes(recording)
    assert found["facts"]["repo.about"] == {
        "from": "a" * 400,
        "to": "short",
        "cut": {"from": 401},
    }
    told = found["facts"]["repo.owners"]
    assert told.keys() == {"from", "to", "cut"}
    assert told["from"].items() <= owners.items()
    assert (told["to"], told["cut"]) == ({"team-000": 1}, {"from": 100})
    recording.time.advance(HOUR)
    # A list of short ones is told whole, without a word of what came and went.
    for files in (["a", "b"], ["b", "c"]):
        recording.time.advance(HOUR)
        await record(recording, ORDERS, {"repo.files": files}, TREE)
    assert (await changes(recording))[1]["facts"] == {
        "repo.files": {"from": ["a", "b"], "to": ["b", "c"]}
    }


# Which changes


@pytest.mark.spec("tools.changed-facts.narrowed")
async def test_a_source_and_a_kind_narrow_the_changes(recording: Service) -> None:
    for number in (1, 2):
        for ref in (PAYMENTS, ACCOUNT):
            await record(recording, ref, {"lines": number})
            await record(recording, ref, {"stars": number}, TREE)
        recording.time.advance(HOUR)

    async def told(**narrowed: Any) -> set[tuple[str, str]]:
        found = await changes(recording, **ALL, **narrowed)
        assert [one["timestamp"] for one in found] == [iso(NOON + HOUR)] * len(found)
        return {(one["dataSourceId"], one["entityRef"]) for one in found}

    each = {(source, ref) for source in ("coverage", "tree") for ref in (PAYMENTS, ACCOUNT)}
    assert await told() == await told(kind="*") == each
    assert await told(dataSourceId="tree") == {("tree", PAYMENTS), ("tree", ACCOUNT)}
    for kind in ("resource", "Resource", " RESOURCE "):
        assert await told(kind=kind) == {("coverage", ACCOUNT), ("tree", ACCOUNT)}
    assert await told(kind="component", dataSourceId="coverage") == {("coverage", PAYMENTS)}
    assert await told(kind="system") == await told(dataSourceId="draft") == set()


@pytest.mark.spec("tools.changed-facts.since")
async def test_since_is_a_time_a_date_or_how_long_ago(recording: Service) -> None:
    entity_id = await past.id_of(recording, PAYMENTS)
    ago = [8 * DAY, 7 * DAY, 12 * HOUR, HOUR, 90 * MINUTE, 0]
    first = ("tree", entity_id, NOON - 30 * DAY, {"stars": -1})
    others = [("tree", entity_id, NOON - time, {"stars": time}) for time in ago]
    await past.write(recording, [first, *others])

    async def told(since: str) -> list[int]:
        found = await ask(recording, since=since)
        return [ago.index(one["facts"]["stars"]["to"]) for one in found["changes"]]

    assert await told("1970-01-01") == await told("30d") == [0, 1, 2, 4, 3, 5]
    assert await told("8d") == [0, 1, 2, 4, 3, 5]
    assert await told("7d") == await told("1w") == await told("168h") == [1, 2, 4, 3, 5]
    assert await told("2026-11-21") == await told("12h") == [2, 4, 3, 5]
    assert await told("2026-11-21T00:00:00.001Z") == [4, 3, 5]
    assert await told("90m") == await told("2026-11-21T10:30:00") == [4, 3, 5]
    assert await told("2026-11-21T13:00:00+02:00") == [3, 5]
    assert await told("0d") == await told("2026-11-21T12:00:00Z") == [5]
    assert await told("999999w") == [0, 1, 2, 4, 3, 5]
    assert (await ask(recording, since="999999w"))["since"] == "1970-01-01T00:00:00.000+00:00"
    assert (await ask(recording, since="90m"))["since"] == "2026-11-21T10:30:00.000+00:00"


@pytest.mark.spec("tools.changed-facts.from-what-to-what")
async def test_what_was_before_since_is_what_it_changed_from(recording: Service) -> None:
    await record(recording, PAYMENTS, {"lines": 100})
    recording.time.advance(30 * DAY)
    await record(recording, PAYMENTS, {"lines": 101})
    assert await changes(recording, since="1m") == [
        change(COVERAGE, PAYMENTS, 30 * DAY, {"lines": (100, 101)})
    ]


@pytest.mark.spec("removed.vanishes-from-every-read")
async def test_changes_of_removed_entities_and_of_unconfigured_sources_are_not_told(
    recording: Service,
) -> None:
    entity_id = await past.id_of(recording, PAYMENTS)
    for number in (1, 2):
        await record(recording, PAYMENTS, {"lines": number})
        await record(recording, ORDERS, {"lines": number})
        await past.write(recording, [("gone", entity_id, NOON + number, {"lines": number})])
        recording.time.advance(HOUR)
    assert [one["entityRef"] for one in await changes(recording)] == [PAYMENTS, ORDERS]
    await recording.push("first", component("orders"))
    assert [one["entityRef"] for one in await changes(recording)] == [ORDERS]


@pytest.mark.spec("tools.changed-facts.drafts-are-marked")
async def test_what_a_draft_changed_is_marked(recording: Service) -> None:
    document = pushed("quality")
    await define(recording, document, publish=False)
    for lines in (1, 2):
        await push(recording, item(PAYMENTS, lines=lines), to="quality")
        recording.time.advance(2 * SECOND)
    await define(recording, document)
    await push(recording, item(PAYMENTS, lines=3), to="quality")
    found = await changes(recording, **ALL, dataSourceId="quality")
    assert [(one["facts"], one["version"], one.get("draft")) for one in found] == [
        ({"lines": {"from": 1, "to": 2}}, "0.0.0", True),
        ({"lines": {"from": 2, "to": 3}}, "1.0.0", None),
    ]
    for lines in (1, 2):
        await record(recording, PAYMENTS, {"lines": lines}, DRAFT)
        recording.time.advance(HOUR)
    assert [one["draft"] for one in await changes(recording, **ALL, dataSourceId="draft")] == [True]


async def test_a_push_that_leaves_a_fact_out_makes_it_unknown(recording: Service) -> None:
    await define(recording, pushed("quality"))
    await push(recording, item(PAYMENTS, lines=1, tool="a"), to="quality")
    recording.time.advance(HOUR)
    await push(recording, item(PAYMENTS, lines=1), to="quality")
    [found] = await changes(recording, **ALL, dataSourceId="quality")
    assert found["facts"] == {"tool": {"from": "a", "to": None}}
    assert found["unknownReasons"] == {"tool": "not-applicable: the push left it out"}


# Refusals


@pytest.mark.spec("tool-error.bad-argument", "tool-error.says-what-to-do-next")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "missing required field `since`"),
        ({"since": None}, "since"),
        ({"since": 7}, "since"),
        ({"since": ""}, "since is not a time from 1970 on. Give a date or an ISO 8601"),
        ({"since": "7 days"}, "how long ago, such as 90m, 24h, 7d or 2w"),
        ({"since": "-7d"}, "since is not a time"),
        ({"since": "P7D"}, "since is not a time"),
        ({"since": "1234567d"}, "since is not a time"),
        ({"since": "\u0667d"}, "since is not a time"),
        ({"since": "2026-13-01"}, "since is not a time"),
        ({"since": "1969-12-31T23:59:59Z"}, "since is not a time"),
        (
            {"since": "2026-11-22"},
            "since is still to come: it is 2026-11-21T12:00:00.000+00:00 now.",
        ),
        ({"since": "9999-12-31T23:59:59-23:59"}, "since is still to come"),
        ({**ALL, "limit": 0}, "limit"),
        ({**ALL, "limit": 201}, "`int` <= 200"),
        ({**ALL, "kind": ""}, "kind"),
        ({**ALL, "name": "payments"}, "name"),
        ({**ALL, "dataSourceId": "github"}, 'There is no data source "github". There are: entity-'),
        ({**ALL, "cursor": ""}, "Leave cursor out to start anew"),
        ({**ALL, "cursor": "1/tree"}, "Leave cursor out"),
        ({**ALL, "cursor": "1/tree/x"}, "Leave cursor out"),
        ({**ALL, "cursor": f"1/tree/{'9' * 19}"}, "Leave cursor out"),
        ({**ALL, "cursor": "a" * 100_000}, "Leave cursor out"),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_a_wrong_argument_is_refused(
    recording: Service, arguments: dict[str, Any], told: str
) -> None:
    assert told in refusal(await recording.ask(TOOL, **arguments))
