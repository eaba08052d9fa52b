"""get-fact-history: the rows of an entity's history, whole and narrowed."""

from typing import Any

import pytest

from factbook.clock import DAY, HOUR, SECOND, iso
from tests.api.defining import define, item, push, pushed
from tests.service import NOON, Service, component
from tests.tools import past
from tests.tools.checks import refusal, structured
from tests.tools.past import HISTORY, ORDERS, PAYMENTS, answered, rows
from tests.tools.sources import DRAFT, TREE, record


def row(source: str, time: int, version: str = "1.0.0", /, **more: Any) -> dict[str, Any]:
    """A row as it is shown, so many milliseconds after noon."""
    return {
        "timestamp": iso(NOON + time),
        "dataSourceId": source,
        "version": version,
        "facts": {},
        **more,
    }


# Rows


@pytest.mark.spec("tools.fact-history.rows")
async def test_each_row_tells_when_which_source_wrote_what_and_why_not(recording: Service) -> None:
    await record(recording, PAYMENTS, {"lines": 100, "share": 0.5})
    await record(recording, ORDERS, {"lines": 1})
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"lines": 120}, reasons={"share": "forbidden"})
    await record(recording, PAYMENTS, {"stars": 3}, TREE, {"repo": "not-found"})
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"lines": "many"})
    await record(recording, PAYMENTS, {}, TREE, {"": "no-annotation"})
    assert await answered(recording, HISTORY, name="payments") == {
        "entityRef": PAYMENTS,
        "history": [
            row("tree", 2 * HOUR, "1.4.0", unknownReasons={"*": "no-annotation"}),
            row(
                "coverage",
                2 * HOUR,
                "2.1.0-rc.1",
                unknownReasons={
                    "lines": "bad-definition: schema.lines.type: "
                    "expected an integer, not this string"
                },
            ),
            row("tree", HOUR, "1.4.0", facts={"stars": 3}, unknownReasons={"repo": "not-found"}),
            row(
                "coverage",
                HOUR,
                "2.1.0-rc.1",
                facts={"lines": 120},
                unknownReasons={"share": "forbidden"},
            ),
            row("coverage", 0, "2.1.0-rc.1", facts={"lines": 100, "share": 0.5}),
        ],
    }


@pytest.mark.spec("tools.fact-history.rows")
async def test_an_entity_without_a_past_has_no_rows(recording: Service) -> None:
    found = await answered(recording, HISTORY, name="payments")
    assert found == {"entityRef": PAYMENTS, "history": []}


@pytest.mark.spec("tools.fact-history.rows")
async def test_a_value_that_was_kept_while_the_vendor_failed_is_neither_value_nor_unknown(
    recording: Service,
) -> None:
    await record(recording, PAYMENTS, {"lines": 100, "share": 0.5})
    recording.time.advance(HOUR)
    await past.fail(recording, PAYMENTS, {"lines": 101}, {"share": "rate-limited"})
    recording.time.advance(HOUR)
    await past.fail(recording, PAYMENTS, {}, {"": "upstream-error"})  # brings nothing at all
    latest = await recording.facts("get-entity-facts", dataSourceId="coverage", name="payments")
    assert latest["facts"] == {"lines": 101, "share": 0.5}
    assert [one["facts"] for one in await rows(recording)] == [
        {"lines": 101},
        {"lines": 100, "share": 0.5},
    ]
    assert not any("unknownReasons" in one for one in await rows(recording))


@pytest.mark.spec("removed.vanishes-from-every-read")
async def test_the_past_of_a_removed_entity_is_not_told(recording: Service) -> None:
    await record(recording, PAYMENTS, {"lines": 100})
    await recording.push("first", component("orders"))
    assert "There is no entity" in refusal(await recording.ask(HISTORY, name="payments"))


async def test_what_a_source_wrote_that_is_configured_no_more_is_not_told(
    recording: Service,
) -> None:
    entity_id = await past.id_of(recording, PAYMENTS)
    await past.write(
        recording, [("gone", entity_id, NOON + time, {"lines": 1}) for time in range(50)]
    )
    await record(recording, PAYMENTS, {"lines": 100})
    found = [page async for page in past.pages(recording, HISTORY, name="payments", limit=1)]
    assert [one["dataSourceId"] for page in found for one in page["history"]] == ["coverage"]


@pytest.mark.spec("tools.fact-history.names-the-entity")
async def test_the_entity_is_named_as_for_the_metric_tools(recording: Service) -> None:
    await record(recording, PAYMENTS, {"lines": 100})
    expected = await answered(recording, HISTORY, name="payments")
    for named in (
        {"entityRef": PAYMENTS},
        {"entityRef": "Payments"},
        {"name": "PAYMENTS", "kind": "Component", "namespace": "Default"},
        {"name": "payments", "entityRef": PAYMENTS},
        {"name": "", "entityRef": PAYMENTS},
    ):
        assert structured(HISTORY, await recording.ask(HISTORY, **named)) == expected
    assert "Give either name" in refusal(await recording.ask(HISTORY))
    text = refusal(await recording.ask(HISTORY, name="payments", entityRef=ORDERS))
    assert f"name means {PAYMENTS} and entityRef means {ORDERS}" in text


# Which rows


@pytest.mark.spec("tools.fact-history.narrowed")
async def test_a_source_and_names_of_facts_narrow_the_rows(recording: Service) -> None:
    await record(recording, PAYMENTS, {"lines": 100, "share": 0.5})
    await record(recording, PAYMENTS, {"stars": 3, "repo.about": "Pays."}, TREE)
    await record(recording, PAYMENTS, {"lines": 7}, DRAFT)
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"stars": 4}, TREE, {"repo": "not-found"})
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {}, TREE, {"": "forbidden", "stars": "feature-off"})

    assert [one["facts"] for one in await rows(recording, dataSourceId="tree")] == [
        {},
        {"stars": 4},
        {"repo.about": "Pays.", "stars": 3},
    ]
    # A reason of a group, or of everything, is that of the fact that is asked for.
    assert await rows(recording, dataSourceId="tree", facts=["repo.about"]) == [
        row("tree", 2 * HOUR, "1.4.0", unknownReasons={"repo.about": "forbidden"}),
        row("tree", HOUR, "1.4.0", unknownReasons={"repo.about": "not-found"}),
        row("tree", 0, "1.4.0", facts={"repo.about": "Pays."}),
    ]
    both = await rows(recording, facts=["stars", "repo.about"])
    assert [one.get("unknownReasons") for one in both] == [
        {"repo.about": "forbidden", "stars": "feature-off"},
        {"repo.about": "not-found"},
        None,
    ]
    # Every source that has such a fact; rows that say nothing of it are left out.
    assert [one["dataSourceId"] for one in await rows(recording, facts=["lines"])] == [
        "draft",
        "coverage",
    ]
    assert await rows(recording, facts=["repo.files"], to="2026-11-21T12:30:00Z") == []


@pytest.mark.spec("tools.fact-history.narrowed")
async def test_from_and_to_are_included_and_a_date_is_all_of_it(recording: Service) -> None:
    entity_id = await past.id_of(recording, PAYMENTS)
    midnight = NOON - 12 * HOUR
    times = [midnight - 1, midnight, midnight + 1, NOON, midnight + DAY - 1, midnight + DAY]
    await past.write(recording, [("tree", entity_id, time, {"stars": time}) for time in times])

    async def between(**given: str) -> list[int]:
        found = [one["facts"]["stars"] for one in await rows(recording, **given)]
        assert found == sorted(found, reverse=True)
        return [times.index(time) for time in reversed(found)]

    assert await between() == [0, 1, 2, 3, 4, 5]
    assert await between(**{"from": "2026-11-21"}) == [1, 2, 3, 4, 5]
    assert await between(to="2026-11-21") == [0, 1, 2, 3, 4]
    assert await between(**{"from": "2026-11-21", "to": "2026-11-21"}) == [1, 2, 3, 4]
    assert await between(to="2026-11-20") == [0]
    assert await between(**{"from": "2026-11-21T12:00:00Z", "to": "2026-11-21T12:00:00Z"}) == [3]
    # Without an offset it is UTC, with one it is what it says.
    assert await between(**{"from": "2026-11-21T12:00:00"}) == [3, 4, 5]
    assert await between(**{"from": "2026-11-21T14:00:00.001+02:00"}) == [4, 5]
    assert await between(to="2026-11-20T23:59:59.999-00:00") == [0]
    for far in ("9999-12-31", "9999-12-31T23:59:59.999-23:59", "1970-01-01"):
        assert len(await between(**{"from": "1970-01-01"})) == 6
        assert await between(**{"from": far, "to": "9999-12-31T23:59:59.999-23:59"}) == (
            [0, 1, 2, 3, 4, 5] if far == "1970-01-01" else []
        )
    assert await between(to="1970-01-01T00:00:00Z") == []


# Drafts and versions


@pytest.mark.spec("tools.fact-history.drafts-are-marked")
async def test_what_a_draft_wrote_is_marked_and_stays_so_when_it_is_published(
    recording: Service,
) -> None:
    document = pushed("quality")
    await define(recording, document, publish=False)
    await push(recording, item(PAYMENTS, lines=1), to="quality")
    assert [one["draft"] for one in await rows(recording, dataSourceId="quality")] == [True]
    recording.time.advance(2 * SECOND)
    await define(recording, document)
    await push(recording, item(PAYMENTS, lines=2), to="quality")
    found = await rows(recording, dataSourceId="quality")
    assert [(one["facts"]["lines"], one["version"], one.get("draft")) for one in found] == [
        (2, "1.0.0", None),
        (1, "0.0.0", True),
    ]
    await record(recording, PAYMENTS, {"lines": 1}, DRAFT)
    assert [one["draft"] for one in await rows(recording, dataSourceId="draft")] == [True]
