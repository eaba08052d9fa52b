"""Grading: what is kept of levels equals what grading everything anew would give."""

import random
from collections import Counter
from typing import Any

import pytest

from factbook.catalog.filters import Matcher
from factbook.checks import state
from factbook.checks.definitions import definition_versions, publications
from factbook.checks.definitions.definition_versions import scorecard_store
from factbook.checks.definitions.scorecard import parse_scorecard
from factbook.checks.results import evaluator, level_store
from factbook.checks.results.grader import Grader, decode_level
from factbook.checks.results.level_store import (
    CountedCheck,
    EntityPlace,
    GradedEntity,
    Grading,
    LevelDeltas,
)
from factbook.events.store import EventFilter, page_events
from factbook.storage import Database, Transaction
from tests.checks.scorecards import add_checks, document, effect, publish, put, stored
from tests.facts.test_store import add_entities
from tests.service import NOON, Time

CHECKS = {f"c{slot}": CountedCheck(slot, 0) for slot in (1, 2, 3)}
PASS = bytes([state.PASS] * 3)


@pytest.fixture(autouse=True)
async def checks(database: Database) -> None:
    await add_checks(database, *CHECKS)
    await add_entities(database, *(f"component:default/e{id_}" for id_ in range(1, 13)))


def entity(
    id_: int, states: bytes, kind: str = "component", owner: str = "group:default/a"
) -> GradedEntity:
    """An entity whose document was written."""
    matcher = Matcher({"kind": kind, "metadata": {"name": f"e{id_}"}})
    return GradedEntity(id_, states, EntityPlace(owner, "", kind, "", matcher))


async def grade(
    database: Database,
    *entities: GradedEntity,
    checks: dict[str, CountedCheck] | None = None,
    reached: int = 0,
    now: int = NOON,
) -> None:
    """Grade entities as a transaction that writes their states does."""

    def work(transaction: Transaction) -> None:
        transaction.lock(publications.DEFINITIONS_LOCK, shared=True)
        found = Grading(scorecard_store.all_within(transaction), checks or CHECKS)
        deltas = LevelDeltas()
        found.update(transaction, entities, now, deltas, reached=reached)
        deltas.write(transaction)
        if reached:
            definition_versions.note_grading_progress(transaction, reached)

    await database.write(work)


async def in_effect(database: Database, **members: Any) -> None:
    await put(database, document(**members))
    await publish(database)
    await effect(database)


async def told(database: Database) -> list[tuple[str, Any, Any]]:
    page = await page_events(database, None, EventFilter(["level.changed"]), 100)
    return [(one.subject, one.data["from"], one.data["to"]) for one in page.events]


async def counted(database: Database, slot: int = 1) -> dict[tuple[str, str, int], int]:
    return {
        (one.owner, one.kind, one.level): one.entities
        for one in await level_store.count_levels(database, slot)
    }


@pytest.mark.both_databases
async def test_levels_counts_and_events_follow_what_is_written(database: Database) -> None:
    await in_effect(database, appliesTo={"kind": "component"})
    await grade(database, entity(1, PASS), entity(2, b""), entity(3, PASS, kind="api"))
    assert decode_level(await level_store.read_entity_levels(database, 1), 1) == (2, 2, 100, 100)
    assert await counted(database) == {
        ("group:default/a", "component", 2): 1,
        ("group:default/a", "component", 0): 1,
    }
    assert await told(database) == []
    changed = GradedEntity(1, bytes([state.PASS, state.FAIL, state.PASS]))
    await grade(database, changed)
    assert await told(database) == [("component:default/e1", "silver", "bronze")]
    assert await counted(database) == {
        ("group:default/a", "component", 1): 1,
        ("group:default/a", "component", 0): 1,
    }
    found = await level_store.read_level_page(database, 1, 0, 10)
    assert [(id_, one.level, one.score) for id_, one in found] == [(1, 1, 66), (2, 0, None)]
    assert await level_store.read_level_page(database, 1, 0, 10, ["group:default/b"]) == []


async def test_an_entity_that_moves_is_counted_under_its_new_owner(database: Database) -> None:
    await in_effect(database)
    await grade(database, entity(1, PASS))
    await grade(database, entity(1, PASS, owner="group:default/b"))
    assert await counted(database) == {("group:default/b", "component", 2): 1}
    assert await told(database) == []


async def test_an_entity_exempt_from_a_whole_scorecard_is_not_counted(database: Database) -> None:
    await in_effect(database)
    await grade(database, entity(1, PASS))
    exempt = GradedEntity(1, PASS, exempt=frozenset({"readiness"}))
    await grade(database, exempt)
    assert await counted(database) == {}
    assert await level_store.read_level_page(database, 1, 0, 10) == []
    # Once the exemption has ended, the facts that come in find it in the scorecard again.
    await grade(database, GradedEntity(1, PASS))
    assert await counted(database) == {("group:default/a", "component", 2): 1}


async def test_readers_see_the_version_before_until_all_are_graded(database: Database) -> None:
    await in_effect(database)
    await grade(database, entity(1, PASS), entity(2, PASS))
    await put(database, document(entries=[{"check": "c1", "level": "bronze"}]))
    await publish(database)
    await grade(database, entity(1, PASS), reached=1)
    assert (await stored(database)).slot == 1
    assert await counted(database, 1) == {("group:default/a", "component", 2): 2}
    # It is not reached yet, but the version that readers see follows.
    await grade(database, GradedEntity(2, b""))
    await grade(database, entity(2, b""), reached=2)
    await effect(database)
    assert await counted(database, 2) == {
        ("group:default/a", "component", 2): 1,
        ("group:default/a", "component", 0): 1,
    }
    assert await counted(database, 1) == {}


async def test_a_check_counts_from_its_day_on_and_makes_the_scorecard_due(
    database: Database,
) -> None:
    later = {**CHECKS, "c2": CountedCheck(2, NOON + 10), "c3": CountedCheck(3, None)}
    await in_effect(database)
    fails = bytes([state.PASS, state.FAIL, state.FAIL])
    await grade(database, entity(1, fails), checks=later)
    assert decode_level(await level_store.read_entity_levels(database, 1), 1) == (2, 2, 100, 100)

    def due(transaction: Transaction) -> list[list[str]]:
        found = Grading(scorecard_store.all_within(transaction), later)
        return [found.due(at) for at in (NOON + 9, NOON + 10)]

    assert await database.write(due) == [[], ["c2"]]
    await database.write(lambda tx: scorecard_store.grade_again(tx, ["c2"], NOON + 10))
    await grade(database, entity(1, fails), checks=later, reached=1)
    await effect(database)
    slot = (await stored(database)).slot
    assert slot is not None
    assert decode_level(await level_store.read_entity_levels(database, 1), slot) == (1, 1, 50, 100)
    assert await database.write(due) == [[], []]


async def test_a_version_of_a_check_counts_with_the_grading_that_reads_it(
    database: Database,
) -> None:
    await in_effect(database)
    await grade(database, entity(1, PASS))
    await database.write(lambda tx: scorecard_store.grade_again(tx, ["c2"], NOON))
    # What is written meanwhile is graded by it at once, and told.
    states = PASS + bytes([state.FAIL])
    newer = {**CHECKS, "c2": CountedCheck(4, 0)}
    await grade(database, entity(1, states), checks=newer, reached=1)
    assert await told(database) == [("component:default/e1", "silver", "bronze")]
    levels = await level_store.read_entity_levels(database, 1)
    assert [decode_level(levels, slot) for slot in (1, 2)] == [(1, 1, 66, 100)] * 2


async def test_levels_of_a_scorecard_that_is_not_in_effect_yet_are_not_told(
    database: Database,
) -> None:
    await in_effect(database, effectiveFrom="2999-01-01")
    await grade(database, entity(1, PASS))
    await grade(database, GradedEntity(1, b""))
    assert await told(database) == []


async def test_a_removed_entity_is_counted_no_more(database: Database) -> None:
    await in_effect(database)
    await grade(database, entity(1, PASS), entity(2, PASS))

    def remove(transaction: Transaction) -> None:
        found, deltas = Grading(scorecard_store.all_within(transaction), CHECKS), LevelDeltas()
        found.remove(transaction, [1, 9], deltas)
        found.remove(transaction, [1], deltas)
        deltas.write(transaction)

    await database.write(remove)
    assert await counted(database) == {("group:default/a", "component", 2): 1}
    assert await level_store.read_entity_levels(database, 1) == b""


@pytest.mark.both_databases
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
async def test_after_any_history_counts_are_those_of_all_entities(
    database: Database, seed: int
) -> None:
    chance = random.Random(seed)
    alive: dict[int, GradedEntity] = {}
    await in_effect(database, appliesTo={"kind": "component"})
    reached, is_pending = 0, False

    def some(id_: int) -> GradedEntity:
        bytes_ = bytes(chance.choices([0, 1, 2, 3, 4, 5, 17, 18], k=3))
        kind, owner = chance.choice(["component", "api"]), chance.choice(["", "group:default/a"])
        return entity(id_, bytes_, kind, owner)

    for _ in range(60):
        step = chance.randrange(8)
        id_ = chance.randint(1, 12)
        if step < 3:
            alive[id_] = some(id_)
            await grade(database, alive[id_])
        elif step == 3 and id_ in alive:
            alive[id_] = alive[id_]._replace(states=some(id_).states)
            await grade(database, alive[id_]._replace(place=None))
        elif step == 4:
            alive.pop(id_, None)

            def remove(transaction: Transaction, gone: int = id_) -> None:
                found = Grading(scorecard_store.all_within(transaction), CHECKS)
                deltas = LevelDeltas()
                found.remove(transaction, [gone], deltas)
                deltas.write(transaction)

            await database.write(remove)
        elif step == 5:
            await database.write(lambda tx: scorecard_store.grade_again(tx, ["c1"], NOON))
            reached, is_pending = 0, True
        elif is_pending:
            end = reached + 4
            batch = [one for key, one in sorted(alive.items()) if reached < key <= end]
            await grade(database, *batch, reached=end)
            reached = end
            if reached >= 12:
                await effect(database)
                is_pending = False
    await check_everything(database, alive)


async def check_everything(database: Database, alive: dict[int, GradedEntity]) -> None:
    """Compare levels and counts with what the definition gives for each entity."""
    found = await stored(database)
    assert found.slot is not None
    grader = Grader(
        parse_scorecard(found.published), {id_: one.slot for id_, one in CHECKS.items()}
    )
    wanted: Counter[tuple[str, str, int]] = Counter()
    scores = 0
    for one in alive.values():
        assert one.place is not None
        level = decode_level(await level_store.read_entity_levels(database, one.id), found.slot)
        if one.place.kind != "component":
            assert level is None
            continue
        standing = grader.standing(one.states)
        assert level is not None
        assert level.level == standing.level
        wanted[one.place.owner, "component", standing.level] += 1
        scores += level.score or 0
    assert await counted(database, found.slot) == wanted
    counts = await level_store.count_levels(database, found.slot)
    assert sum(one.score for one in counts) == scores


async def test_a_grading_leaves_no_empty_states_behind(database: Database) -> None:
    texts = ('{"kind":"Component","metadata":{"name":"e",', '"namespace":"default"},"spec":{}')
    await database.write(lambda tx: tx.run("UPDATE entities SET head = ?, body = ?", texts))
    await put(database, document())
    await publish(database)
    await evaluator.finish_gradings(database, Time())
    assert len(await database.all("SELECT entity_id FROM scorecard_levels")) == 12
    assert await database.all("SELECT entity_id FROM check_states") == []
