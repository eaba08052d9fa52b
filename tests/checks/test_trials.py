"""Trials hold up nobody: they are evaluated when their transaction is over, on a thread."""

import asyncio
import threading

import pytest

from factbook.checks import trials
from factbook.checks.trials import EvaluatedTrial, TrialRoom, WriteTrial
from factbook.errors import InputError, TooManyRequestsError
from factbook.storage import Database
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.service import Time
from tests.waiting import LONG

OWNED = a_check("owned", leaf("spec.owner", "isKnown", source="entity"))


@pytest.fixture
async def catalog(database: Database) -> CheckedCatalog:
    """A component, and a check of it."""
    catalog = CheckedCatalog(database, Time())
    await catalog.push(a="red")
    await catalog.publish(OWNED)
    return catalog


@pytest.mark.both_databases
async def test_a_push_commits_while_a_trial_is_evaluated(catalog: CheckedCatalog) -> None:
    loop, began, goes_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def look(found: EvaluatedTrial) -> None:
        loop.call_soon_threadsafe(began.set)
        assert goes_on.wait(LONG)

    trial = WriteTrial(catalog.database, catalog.time, "tok_1")
    work = asyncio.create_task(trial.write(lambda transaction: None, look))
    await began.wait()
    await catalog.push(a="")
    assert not work.done()
    goes_on.set()
    await work


async def test_a_caller_has_one_trial_at_a_time_and_few_that_wait() -> None:
    room, order = TrialRoom(), list[str]()
    ends = asyncio.Event()

    async def run(caller: str, name: str) -> None:
        async with room.enter(caller):
            order.append(name)
            await ends.wait()

    first = asyncio.create_task(run("tok_1", "first"))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(run("tok_1", "later")) for _ in range(3)]
    other = asyncio.create_task(run("tok_2", "other"))
    await asyncio.sleep(0)
    assert order == ["first", "other"]
    with pytest.raises(TooManyRequestsError, match="3 of your trials are waiting"):
        await run("tok_1", "too many")
    third = asyncio.create_task(run("tok_3", "third"))
    await asyncio.sleep(0)
    # Two are under way in all.
    assert order == ["first", "other"]
    ends.set()
    await asyncio.gather(first, other, third, *waiting)
    assert sorted(order) == ["first", "later", "later", "later", "other", "third"]


async def test_a_trial_is_evaluated_on_a_thread_within_its_budget() -> None:
    async with TrialRoom().enter("tok_1") as budget:
        assert await budget.work(threading.get_ident) != threading.get_ident()
        budget.charge(trials.MOST_STEPS)
        with pytest.raises(InputError, match="The trial would take too long"):
            budget.charge(1)


async def test_a_caller_has_an_allowance_for_trials() -> None:
    room = TrialRoom()
    whole = trials.MOST_STEPS_A_MINUTE // trials.MOST_STEPS

    async def spend(caller: str) -> None:
        async with room.enter(caller) as budget:
            budget.charge(trials.MOST_STEPS)

    for _ in range(whole):
        await spend("tok_1")
    with pytest.raises(TooManyRequestsError, match="used up what trials may cost"):
        await spend("tok_1")
    await spend("tok_2")
