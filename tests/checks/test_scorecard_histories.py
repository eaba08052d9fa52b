"""Levels, counts and exemptions after any history: they equal a grading of every entity anew."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from factbook.catalog.filters import Matcher
from factbook.catalog.store import stored_entities
from factbook.checks import state
from factbook.checks.definitions import exemption_store, publications
from factbook.checks.definitions.definition_versions import scorecard_store
from factbook.checks.definitions.exemption_store import (
    Exemption,
    ExemptionActor,
    ExemptionFilter,
    ExemptionRequest,
)
from factbook.checks.definitions.scorecard import ExemptionRules
from factbook.checks.results import evaluator, level_store
from factbook.checks.results.entity_evaluation import CheckCache
from factbook.checks.results.evaluator import Evaluation
from factbook.checks.results.grader import find_slot_level
from factbook.checks.results.incremental import make_grading
from factbook.checks.results.level_store import GradedEntity, LevelDeltas, place_entity
from factbook.clock import DAY, HOUR
from factbook.storage import Database, Transaction
from factbook.storage.database_url import open_database
from tests.checks.catalog import CheckedCatalog
from tests.checks.history import CHECKS, SEEDS, CheckWriter, attached, settle
from tests.checks.scorecards import add_checks, publish, put
from tests.checks.scorecards import document as scorecard
from tests.service import Time
from tests.storage.evaluating import evaluating

pytestmark = pytest.mark.both_databases

ANN = ExemptionActor("user:default/ann", may_decide=True)
BOB = ExemptionActor("user:default/bob", may_decide=True)
CARDS = ("a", "b")


class ScorecardWriter(CheckWriter):
    """Writes scorecards and exemptions, too."""

    async def step(self) -> None:
        """Do one thing."""
        actions = (self.publish_scorecard, self.exempt, self.exempt, self.decide, self.regrade)
        if self.chance.random() < 0.6:
            await super().step()
        else:
            try:
                await self.chance.choice(actions)()
            except Exception as error:
                if type(error).__module__ != "factbook.errors":
                    raise

    async def publish_scorecard(self) -> None:
        """Define a scorecard anew, and publish it."""
        chance = self.chance
        rows = await self.database.all("SELECT id FROM checks ORDER BY id")
        known = [id_ for (id_,) in rows]
        some = chance.sample(known, chance.randint(1, len(known))) if known else list(CHECKS[:1])
        document: dict[str, Any] = {
            "id": chance.choice(CARDS),
            "title": "Card",
            "levels": ["low", "high"],
            "entries": [
                {"check": id_, "level": chance.choice(["low", "high"]), "weight": 2}
                if chance.random() < 0.7
                else id_
                for id_ in some
            ],
            "appliesTo": {"kind": chance.choice(["component", "api"])},
        }

        def work(transaction: Transaction) -> None:
            publications.lock_definitions(transaction)
            scorecard_store.put(transaction, document, ANN.ref, self.time())
            scorecard_store.publish(transaction, document["id"], ANN.ref, self.time())

        await self.database.write(work)

    async def exempt(self) -> None:
        """Ask for an exemption, now or later, of some check or a whole scorecard."""
        chance, now = self.chance, self.time()
        refs = await self._refs()
        if not refs:
            return
        is_whole = chance.random() < 0.3
        wanted = ExemptionRequest(
            None if is_whole else chance.choice(CHECKS),
            chance.choice(CARDS) if is_whole else None,
            chance.choice(refs),
            "Because",
            now + chance.choice([0, HOUR]),
            now + chance.choice([2 * HOUR, DAY, 9 * DAY]),
        )
        await self.database.write(
            lambda tx: exemption_store.store_request(tx, wanted, [ExemptionRules()], ANN, now)
        )

    async def decide(self) -> None:
        """Approve or revoke some exemption."""
        found = await exemption_store.list_exemptions(self.database, ExemptionFilter(), 1_000)
        if found:
            one = self.chance.choice(sorted(found, key=_age)[-20:])
            what: Any = "approve" if one.state == "requested" else "revoke"
            await self.database.write(
                evaluating(
                    lambda tx: exemption_store.store_decision(
                        tx, one.id, what, [], BOB, self.time()
                    )
                )
            )

    async def regrade(self) -> None:
        """Do a piece of what gradings have left to do."""
        await evaluator.grade_pending(self.database, self.time)


def _age(one: Exemption) -> tuple[object, ...]:
    # Never by the id, which is drawn anew in each run: a seed is to give one history.
    about = (one.check or "", one.scorecard or "", one.entity)
    return one.requested_at, *about, one.starts_at, one.until, one.state


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
async def databases(
    database: Database, database_url: str, time: Time
) -> AsyncIterator[Sequence[Database]]:
    """One database, as two processes open it."""
    other = await open_database(database_url, connections=6)
    for one in (database, other):
        attached(one, time)
    yield database, other
    await other.close()


async def finish(database: Database, time: Time) -> None:
    """Do all that is left, as a process does a minute later."""
    await settle(database, time)
    time.advance(60_000)
    # A process that has just been started.
    await Evaluation(database, time).tick()
    await settle(database, time)


async def verify(database: Database, now: int) -> Counter[int]:
    """Compare levels, counts and exempt states with those of a grading anew; levels seen."""

    def anew(transaction: Transaction) -> tuple[Any, ...]:
        transaction.lock(publications.DEFINITIONS_LOCK, shared=True)
        known = CheckCache().current(transaction)
        rows = transaction.all(
            *stored_entities.entity_page_sql(stored_entities.EVERY_ENTITY, 0, 1_000)
        )
        entities = stored_entities.decode_collectable(rows)
        ids = [id_ for id_, _, _ in entities]
        return (
            known,
            make_grading(transaction, known),
            entities,
            exemption_store.list_holding_exemptions(transaction, ids, now),
            dict(transaction.all("SELECT entity_id, states FROM check_states")),
            level_store.read_level_rows(transaction, ids),
            scorecard_store.all_within(transaction),
        )

    known, grading, entities, exempt, states, rows, cards = await database.write(anew)
    deltas = LevelDeltas()
    seen: Counter[int] = Counter()
    for id_, ref, document in entities:
        own = bytes(states.get(id_, b""))
        held = exempt.get(id_, exemption_store.NOT_EXEMPT)
        for check_id, slot in known.slots.items():
            byte = own[slot - 1] if slot <= len(own) else 0
            plain = byte & ~state.EXEMPT
            is_exempt = plain in {1, 2, 3} and check_id in held.checks
            assert bool(byte & state.EXEMPT) is is_exempt, (ref, check_id, byte)
        entity = GradedEntity(
            id_, own, place_entity(ref, document, Matcher(document)), held.scorecards
        )
        assert entity.place is not None
        for one in grading.graders:
            wanted = one.own(entity, b"")
            stored = find_slot_level(rows[id_].levels, one.slot) if id_ in rows else None
            assert stored == wanted, (ref, one.slot)
            deltas.add(one.slot, entity.place[:4], wanted, 1, id_)
            seen[wanted[0]] += 1
    for card in cards:
        assert card.pending_slot is None
        if card.slot is not None:
            counts = await level_store.count_levels(database, card.slot)
            assert {
                (one.owner, one.system, one.kind, one.level): [
                    one.entities,
                    one.scored,
                    one.score,
                ]
                for one in counts
            } == deltas.of_slot(card.slot)
            by_label = await database.all(_BY_LABEL, (card.slot,))
            assert {row[:4]: list(row[4:]) for row in by_label} == deltas.labels.of_slot(card.slot)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_levels_and_exemptions_follow_every_history(
    databases: Sequence[Database], time: Time, seed: int
) -> None:
    people = [ScorecardWriter(one, time, f"{seed} {place}") for place, one in enumerate(databases)]
    seen: Counter[int] = Counter()
    for step in range(240):
        await people[step % 2].step()
        if step % 30 == 29:
            await finish(databases[step % 2], time)
            seen.update(await verify(databases[0], time()))
    assert len(seen) >= 3, seen


async def test_levels_follow_what_is_written_while_every_check_is_a_draft(
    database: Database, time: Time
) -> None:
    catalog = CheckedCatalog(database, time)
    await add_checks(database, "draft")
    await put(database, scorecard(entries=["draft"]))
    await catalog.push(a="red", b="blue")
    await publish(database)
    await evaluator.finish_gradings(database, time)
    assert await verify(database, time()) == {1: 2}
    await catalog.push(b="blue", c="red")
    await catalog.push(c="blue", d="")
    assert await verify(database, time()) == {1: 2}
    assert await database.all(_LEVELS_OF_NOTHING) == []


_BY_LABEL = """
SELECT label, value, level, block, entities, scored, score FROM scorecard_label_counts
WHERE slot = ? AND (entities <> 0 OR scored <> 0 OR score <> 0)
"""

_LEVELS_OF_NOTHING = """
SELECT entity_id FROM scorecard_levels WHERE entity_id NOT IN (SELECT id FROM entities)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_people_who_write_together_leave_what_a_grading_anew_finds(
    databases: Sequence[Database], time: Time, seed: int
) -> None:
    async def live(number: int) -> None:
        person = ScorecardWriter(databases[number % 2], time, f"{seed} {number}", apart=True)
        for _ in range(12):
            await person.step()

    for _ in range(3):
        await asyncio.gather(*(live(number) for number in range(6)))
        await finish(databases[0], time)
        await verify(databases[1], time())
        assert await databases[1].all(_LEVELS_OF_NOTHING) == []
