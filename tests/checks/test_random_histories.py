"""Whatever is written in whichever order: what is stored equals a full evaluation."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import pytest
from structlog.testing import capture_logs

from factbook.checks.results import evaluator
from factbook.storage import Database
from factbook.storage.database_url import open_database
from tests.checks.history import SEEDS, CheckWriter, attached, settle
from tests.checks.verification import verify
from tests.service import Time
from tests.soak import SOAK

pytestmark = pytest.mark.both_databases

STEPS = 160
PEOPLE = 6
TOGETHER = 40 if SOAK else 12


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


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_what_is_evaluated_bit_by_bit_equals_a_full_evaluation(
    databases: Sequence[Database], time: Time, seed: int
) -> None:
    seen: Counter[int] = Counter()
    people = [CheckWriter(one, time, f"{seed} {place}") for place, one in enumerate(databases)]
    for step in range(STEPS):
        await people[step % 2].step()
        if step % 2:
            if step % 20 == 19:
                await settle(databases[0], time)
            await evaluator.evaluate_due(databases[1], time)
            found = await verify(databases[0], time())
            seen.update(value for one in found.values() for value in one.states.values())
    assert len(seen) >= 3, seen


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
async def test_people_who_write_at_the_same_time_leave_what_a_full_evaluation_finds(
    databases: Sequence[Database], time: Time, seed: int
) -> None:
    async def live(number: int) -> None:
        person = CheckWriter(databases[number % 2], time, f"{seed} {number}", apart=True)
        for _ in range(TOGETHER):
            await person.step()

    with capture_logs() as logs:
        for _ in range(3):
            await asyncio.gather(*(live(number) for number in range(PEOPLE)))
            await settle(databases[0], time)
            await verify(databases[1], time())
    # Nobody waited in a circle.
    assert [one for one in logs if one["event"] == "write.again"] == []
