"""get-changed-facts: what changed since a time, of which entity, from what to what."""

from typing import Any

import pytest

from factbook.clock import DAY, HOUR, MINUTE, SECOND, iso
from factbook.facts.datasource import DataSource
from tests.api.defining import define, item, push, pushed
from tests.service import NOON, Service, component
from tests.tools import past
from tests.tools.past import ALL, CHANGES, ORDERS, PAYMENTS, answered, changes
from tests.tools.sources import COVERAGE, DRAFT, TREE, record

ACCOUNT = "resource:default/account"


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
    assert await answered(recording, CHANGES, since="2026-11-21") == {
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
            unknownReasons={
                "lines": "bad-definition: schema.lines.type: expected an integer, not this string"
            },
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


# Which changes


@pytest.mark.both_databases
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
        found = await answered(recording, CHANGES, since=since)
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
    for since, time in (
        ("999999w", "1970-01-01T00:00:00.000+00:00"),
        ("90m", "2026-11-21T10:30:00.000+00:00"),
    ):
        assert (await answered(recording, CHANGES, since=since))["since"] == time


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
    found = await changes(recording)
    assert [one["entityRef"] for one in found if one["dataSourceId"] == "coverage"] == [ORDERS]


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
    assert found["unknownReasons"] == {"tool": "not-sent"}
