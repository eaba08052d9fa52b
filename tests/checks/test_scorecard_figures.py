"""Figures of scorecards: rollups by what entities belong to, and trends day by day."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.catalog.store import related_entities
from factbook.checks import scorecard_figures
from factbook.checks.results import grader, level_store
from factbook.checks.results.level_store import LevelDeltas, LevelRow
from factbook.checks.scorecard_figures import TrendFigures, TrendPoint
from factbook.clock import DAY
from factbook.errors import InputError, NotFoundError
from factbook.storage import Database, Transaction
from tests.checks.scorecards import add_checks, document, effect, publish, put
from tests.facts.test_store import add_entities
from tests.service import NOON

TOP, MIDDLE, LEAF = (f"group:default/{name}" for name in ("top", "middle", "leaf"))
ANN = "user:default/ann"
GROUPS = (TOP, MIDDLE, LEAF, "system:default/shop")
LABELS = {11: '{"tier":"one","zone":"x"}', 12: '{"tier":"one"}', 13: '{"tier":"two"}'}
TODAY = NOON // DAY


@pytest.fixture
async def shop(database: Database) -> None:
    """Groups in each other, a system in a domain, and entities at three levels."""
    await add_checks(database, "c1", "c2", "c3")
    await put(database, document())
    await publish(database)
    await effect(database)
    await add_entities(database, *GROUPS)
    relations = [
        (1, "parentOf", MIDDLE),
        (3, "childOf", MIDDLE),
        (4, "partOf", "domain:default/sales"),
        (4, "partOf", "system:default/other"),
    ]
    columns = ("source_id", "type", "target_ref")
    await database.write(lambda tx: tx.insert("relations", columns, relations))
    await stand(
        database,
        (11, LEAF, "system:default/shop", 2),
        (12, LEAF, "", 0),
        (13, MIDDLE, "", 1),
        (14, ANN, "", 1),
        (15, "", "", 2),
    )


async def stand(database: Database, *entities: tuple[int, str, str, int]) -> None:
    """Entities with levels, each at a score of 50 percent for a level."""

    def work(transaction: Transaction) -> None:
        before = level_store.read_level_rows(transaction, [one[0] for one in entities])
        deltas, rows = LevelDeltas(), []
        for id_, owner, system, level in entities:
            own = bytes((level + 1, 3, level * 50, 100))
            place = owner, system, "component", LABELS.get(id_, "")
            if old := before.get(id_):
                deltas.add(1, old.place, grader.find_slot_level(old.levels, 1), -1, id_)
            deltas.add(1, place, own, 1, id_)
            rows.append(LevelRow(id_, *place[:3], own, place[3]))
        level_store.write_levels(transaction, rows, before)
        deltas.write(transaction)

    await database.write(work)


async def rollup(database: Database, by: str, **given_: Any) -> list[dict[str, Any]]:
    found = await scorecard_figures.get_scorecard_in_effect(database, "readiness")
    groups = await scorecard_figures.roll_up_scorecard(database, found, by, **given_)
    return [group.render(found.names) for group in groups]


def totals(groups: Sequence[dict[str, Any]]) -> dict[str | None, Any]:
    return {
        group["name"]: (group["total"], totals(group["children"]))
        if "children" in group
        else group["total"]
        for group in groups
    }


@pytest.mark.both_databases
@pytest.mark.usefixtures("shop")
async def test_a_group_has_the_figures_of_all_below_it(database: Database) -> None:
    found = await rollup(database, "owner")
    assert totals(found) == {None: 1, TOP: (3, {MIDDLE: 3}), ANN: 1}
    assert found[1] == {
        "name": TOP,
        "total": 3,
        "levels": {"bronze": 1, "silver": 1},
        "noLevel": 1,
        "score": 50.0,
        "scored": 3,
        "own": {
            "total": 0,
            "levels": {"bronze": 0, "silver": 0},
            "noLevel": 0,
            "score": None,
            "scored": 0,
        },
        "children": found[1]["children"],
    }
    assert totals(await rollup(database, "owner", depth=9)) == {
        None: 1,
        TOP: (3, {MIDDLE: (3, {LEAF: 2})}),
        ANN: 1,
    }
    assert totals(await rollup(database, "owner", group=MIDDLE, depth=0)) == {MIDDLE: 3}
    assert totals(await rollup(database, "owner", group="group:default/none")) == {
        "group:default/none": 0
    }


@pytest.mark.usefixtures("shop")
async def test_groups_that_hold_each_other_are_shown_once_on_each_way(database: Database) -> None:
    columns = ("source_id", "type", "target_ref")
    rows = [(1, "childOf", LEAF), (1, "childOf", TOP)]
    await database.write(lambda tx: tx.insert("relations", columns, rows))
    found = totals(await rollup(database, "owner", depth=9))
    assert found == {None: 1, LEAF: (3, {TOP: (3, {MIDDLE: 3})}), ANN: 1}


@pytest.mark.both_databases
@pytest.mark.usefixtures("shop")
async def test_figures_by_system_domain_kind_and_label(database: Database) -> None:
    assert totals(await rollup(database, "system")) == {None: 4, "system:default/shop": 1}
    assert totals(await rollup(database, "domain")) == {None: 4, "domain:default/sales": 1}
    assert totals(await rollup(database, "kind")) == {"component": 5}

    found = await rollup(database, "label:Tier")
    assert [(one["name"], one["total"], one["score"]) for one in found] == [
        ("one", 2, 50.0),
        ("two", 1, 50.0),
    ]
    assert await rollup(database, "label:none") == []
    for wrong in ("team", "label:", ""):
        with pytest.raises(InputError):
            await rollup(database, wrong)


async def test_what_has_no_results_has_no_figures(database: Database) -> None:
    await add_checks(database, "c1", "c2", "c3")
    with pytest.raises(NotFoundError):
        await scorecard_figures.get_scorecard_in_effect(database, "readiness")
    await put(database, document())
    with pytest.raises(NotFoundError):
        await scorecard_figures.get_scorecard_in_effect(database, "readiness")


@pytest.mark.both_databases
@pytest.mark.usefixtures("shop")
async def test_a_trend_has_what_was_kept_and_today_as_it_is(database: Database) -> None:
    async def keep(day: int) -> int:
        return await database.write(
            lambda tx: scorecard_figures.record_trends(tx, NOON + day * DAY)
        )

    # Everybody, nobody, three groups and a person.
    assert await keep(0) == 6
    assert await keep(1) == 0
    await stand(database, (12, LEAF, "", 2))
    assert await keep(2) == 4
    assert await keep(2) == 0
    await stand(database, (14, LEAF, "", 1))
    found = await scorecard_figures.get_scorecard_in_effect(database, "readiness")

    async def over(group: str | None, first: int, last: int, step: int = 1) -> list[Any]:
        points = await scorecard_figures.read_trend(
            database, found, group, TODAY + first, NOON + last * DAY, step
        )
        assert [one.render()["date"][:7] for one in points] == ["2026-11"] * len(points)
        return [(one.day - TODAY, one.figures.levels) for one in points]

    before, after = {"": 1, "silver": 1}, {"silver": 2}
    assert await over(LEAF, -5, 3) == [
        (0, before),
        (1, before),
        (2, after),
        (3, {"bronze": 1, "silver": 2}),
    ]
    assert await over(LEAF, 1, 3, 2) == [(1, before), (3, {"bronze": 1, "silver": 2})]
    assert (await over(None, 3, 3)) == [(3, {"bronze": 2, "silver": 3})]
    # One who owns nothing any more is told so once.
    assert await keep(3) == 4
    assert (await over(ANN, 2, 3)) == [(2, {"bronze": 1}), (3, {})]
    assert await keep(4) == 0
    # The last figures from before the time that is kept still tell what held by then.
    assert await database.write(lambda tx: scorecard_figures.trim_trends(tx, NOON + 2 * DAY)) == 4
    assert (await over(ANN, 2, 3)) == [(2, {"bronze": 1}), (3, {})]
    assert (await over(LEAF, 1, 3)) == [(2, after), (3, {"bronze": 1, "silver": 2})]


points = st.dictionaries(st.integers(0, 30), st.integers(1, 99)).map(
    lambda found: [
        TrendPoint(day, TrendFigures({"gold": number})) for day, number in sorted(found.items())
    ]
)


@pytest.mark.slow
@given(points, st.integers(0, 30), st.integers(0, 30), st.integers(1, 7))
def test_a_series_has_for_each_step_the_last_figures_by_then(
    kept: list[TrendPoint], first: int, last: int, step: int
) -> None:
    wanted = []
    for day in range(first, last + 1):
        past = [one for one in kept if one.day <= day]
        if past and (last - day) % step == 0:
            wanted.append(TrendPoint(day, past[-1].figures))
    assert scorecard_figures.make_series(kept, first, last, step) == wanted


@pytest.mark.usefixtures("shop")
async def test_parents_are_known_whichever_of_two_groups_names_the_other(
    database: Database,
) -> None:
    assert await related_entities.read_group_parents(database) == {MIDDLE: {TOP}, LEAF: {MIDDLE}}
    assert await related_entities.read_system_domains(database) == {
        "system:default/shop": "domain:default/sales"
    }


def test_entities_are_counted_by_the_labels_that_the_catalog_finds() -> None:
    long = "x" * 201
    labels = {"Tier": "One", long: "a", "b": long, **{f"c{n:03}": "" for n in range(60)}}
    stored = msgspec.json.decode(level_store.list_counted_labels({"metadata": {"labels": labels}}))
    assert stored.pop("tier", None) is None
    assert list(stored) == [f"c{n:03}" for n in range(level_store.MOST_COUNTED_LABELS)]
    assert (
        level_store.list_counted_labels({"metadata": {"labels": {"Tier": "One"}}})
        == '{"tier":"one"}'
    )
    unlabelled: list[dict[str, Any]] = [{}, {"metadata": {}}, {"metadata": {"labels": {}}}]
    for bare in unlabelled:
        assert level_store.list_counted_labels(bare) == ""
