"""Runs of importers: when they begin, and what becomes of them when something ends."""

import asyncio
from functools import partial
from itertools import pairwise

import pytest

from factbook.clock import DAY, HOUR, MINUTE, SECOND
from factbook.datasources.clients import DatabaseMemory
from factbook.errors import ConfigurationError
from factbook.importers import records
from factbook.importers.records import ImportRun, compute_next_start
from factbook.importers.runner import MOST_ATTEMPTS
from factbook.importers.snapshot import ReadingProblem
from factbook.outbound.client import Allowance
from factbook.scheduling import lease
from factbook.settings import Settings
from factbook.storage import Database
from factbook.worker import sweep
from tests.importers.madeup import ID, ImportingProcess, ImportWorld, MadeUpSystem
from tests.importers.reading import item, part


@pytest.fixture
def world(database: Database) -> ImportWorld:
    return ImportWorld(database)


async def test_an_importer_runs_at_once_and_then_by_its_interval(world: ImportWorld) -> None:
    await world.process.work()
    assert (world.system.readings, await world.names()) == (1, ["a", "b"])
    world.time.advance(HOUR - 1)
    await world.process.work()
    assert world.system.readings == 1
    world.time.advance(1)
    world.system.names.append("c")
    await world.process.work()
    assert (world.system.readings, await world.names()) == (2, ["a", "b", "c"])
    assert [(run.reason, run.state) for run in await world.runs()] == [("cadence", "complete")] * 2


async def test_missed_runs_are_made_up_by_one(world: ImportWorld) -> None:
    await world.process.work()
    world.time.advance(30 * DAY)
    await world.process.work()
    assert world.system.readings == 2


async def test_one_that_never_runs_by_itself_runs_when_it_is_asked(world: ImportWorld) -> None:
    process = world.another("a", every=None)
    await process.work()
    assert world.system.readings == 0
    asked = await world.ask()
    assert await world.ask() == asked
    await process.work()
    assert (world.system.readings, (await world.last()).reason) == (1, "asked")
    await process.work()
    assert world.system.readings == 1


async def test_what_is_asked_for_runs_before_its_time(world: ImportWorld) -> None:
    await world.process.work()
    world.time.advance(MINUTE)
    await world.ask()
    await world.process.work()
    assert world.system.readings == 2


async def test_an_importer_remembers_what_it_noted_in_the_run_before(world: ImportWorld) -> None:
    await world.process.work()
    world.time.advance(HOUR)
    await world.process.work()
    assert world.system.remembered == [None, b"1"]


async def test_an_importer_that_fails_keeps_everything_and_says_why(world: ImportWorld) -> None:
    await world.process.work()
    world.system.fault = ConfigurationError("the account is not what it was")
    world.time.advance(HOUR)
    await world.process.work()
    last = await world.last()
    assert (last.state, last.error) == ("failed", "the account is not what it was")
    assert (last.calls, last.failures) == (1, 1)
    assert await world.names() == ["a", "b"]


async def test_what_nobody_expected_fails_the_run_and_not_the_process(world: ImportWorld) -> None:
    world.system.fault = ValueError("a secret of the system")
    other = MadeUpSystem("x")
    importers = world.system.importer(), other.importer("other")
    await ImportingProcess(world.database, world.time, *importers).work()
    assert other.readings == 1
    last = await world.last()
    assert (last.state, "secret" in last.error) == ("failed", False)


async def test_a_run_that_failed_is_repeated_sooner_then_ever_later(world: ImportWorld) -> None:
    world.system.fault = ConfigurationError("no")
    begun = []
    for _ in range(3 * 60):
        before = world.system.readings
        await world.process.work()
        if world.system.readings > before:
            begun.append(world.time.now // MINUTE)
        world.time.advance(MINUTE)
    assert [b - a for a, b in pairwise(begun)] == [5, 10, 20, 40, 60]
    world.system.fault = None
    world.time.advance(HOUR)
    await world.process.work()
    assert (await world.last()).failures == 0


async def test_a_run_waits_for_the_end_of_a_rate_limit(world: ImportWorld) -> None:
    problem = ReadingProblem("", "no call before later")
    world.system.parts = [part(item("a"), complete=False, problems=[problem])]
    health, until = world.process.client.counted, world.time() + 30 * MINUTE
    health.allowances["core"], health.resumes_at = Allowance(5_000, 0, until), until
    await world.process.work()
    last = await world.last()
    assert (last.state, last.error, last.calls_left) == ("partial", "no call before later", 0)
    world.time.advance(30 * MINUTE - 1)
    await world.process.work()
    assert world.system.readings == 1
    world.time.advance(1)
    await world.process.work()
    assert world.system.readings == 2


async def test_a_reading_without_anything_has_failed(world: ImportWorld) -> None:
    problem = ReadingProblem("github.com/acme", "forbidden")
    world.system.parts = [part(complete=False, problems=[problem])]
    await world.process.work()
    last = await world.last()
    assert (last.state, last.error) == ("failed", "github.com/acme: forbidden")


async def test_held_removals_do_not_make_a_run_come_sooner(world: ImportWorld) -> None:
    await world.process.work()
    world.system.names.clear()
    world.time.advance(HOUR)
    await world.process.work()
    last = await world.last()
    assert (last.state, last.failures) == ("held", 0)
    assert await world.names() == ["a", "b"]


@pytest.mark.both_databases
async def test_a_run_survives_the_process_that_began_it(world: ImportWorld) -> None:
    read, _ = world.held()
    await world.process.runner.tick()
    await read.wait()
    # The process ends here; its run stays begun.
    world.system.fault = None
    await world.another("b").work()
    assert (await world.last()).state == "running"
    world.time.advance(lease.LEADERSHIP_HELD)
    await world.another("b").work()
    [run] = await world.runs()
    assert (run.state, run.attempts) == ("complete", 2)
    assert await world.names() == ["a", "b"]
    assert await world.imports.revision() == 1
    await world.process.runner.let_go()


@pytest.mark.both_databases
async def test_a_process_whose_run_was_taken_over_writes_nothing(world: ImportWorld) -> None:
    read, answer = world.held()
    silent = asyncio.create_task(world.process.work())
    await read.wait()
    world.system.fault = None
    world.system.names = ["new"]
    world.time.advance(lease.LEADERSHIP_HELD)
    await world.another("b").work()
    answer.set()
    await silent
    assert await world.names() == ["new"]
    [run] = await world.runs()
    assert (run.state, run.attempts) == ("complete", 2)


@pytest.mark.both_databases
async def test_of_two_processes_one_begins_a_run(world: ImportWorld) -> None:
    processes = [world.another(name) for name in "abc"]
    await asyncio.gather(*(one.work() for one in processes))
    assert [run.state for run in await world.runs()] == ["complete"]


@pytest.mark.both_databases
async def test_a_process_that_stops_leaves_its_run_to_others_at_once(world: ImportWorld) -> None:
    read, _ = world.held()
    await world.process.runner.tick()
    await read.wait()
    await world.process.runner.let_go()
    run = await world.last()
    assert (run.state, run.holder, run.attempts) == ("waiting", "", 0)
    world.system.fault = None
    await world.another("b").work()
    assert (await world.last()).state == "complete"


@pytest.mark.both_databases
async def test_a_run_that_ends_its_process_time_and_again_is_given_up(world: ImportWorld) -> None:
    for number in range(MOST_ATTEMPTS):
        seen = (await records.get_latest_runs(world.database)).get(ID)
        begin = partial(
            records.begin_import_run,
            importer=ID,
            seen=seen,
            holder=f"dead-{number}",
            now=world.time(),
        )
        await world.database.write(begin)
    world.time.advance(lease.LEADERSHIP_HELD)
    await world.process.work()
    last = await world.last()
    assert (last.state, world.system.readings) == ("failed", 0)
    assert "ended repeatedly" in last.error
    world.time.advance(HOUR)
    await world.process.work()
    assert world.system.readings == 1


@pytest.mark.both_databases
@pytest.mark.slow
async def test_of_many_runs_the_last_ones_are_kept(world: ImportWorld) -> None:
    for _ in range(records.RUNS_KEPT + 5):
        await world.process.work()
        world.time.advance(HOUR)
    assert len(await world.runs()) == records.RUNS_KEPT


@pytest.mark.both_databases
async def test_a_run_of_a_command_counts_for_the_interval(world: ImportWorld) -> None:
    now, outcome = world.time(), records.RunOutcome("complete", calls=3)
    await world.database.write(lambda tx: records.add_ended_run(tx, ID, now - SECOND, outcome, now))
    await world.process.work()
    assert world.system.readings == 0
    assert ((await world.last()).reason, (await world.last()).calls) == ("command", 3)
    await world.ask()
    await world.database.write(lambda tx: records.add_ended_run(tx, ID, now, outcome, now))
    assert [run.reason for run in await world.runs()] == ["asked", "command"]


@pytest.mark.both_databases
async def test_a_clock_that_was_set_back_delays_no_run(world: ImportWorld) -> None:
    world.time.advance(365 * DAY)
    await world.process.work()
    world.time.advance(-365 * DAY)
    await world.process.work()
    assert world.system.readings == 2


def ended(**values: object) -> ImportRun:
    run = ImportRun(1, ID, "cadence", 0, 0, MINUTE, "complete", "", 1)
    return run._replace(**values)  # type: ignore[arg-type]


def test_the_next_start_follows_from_the_last_run(subtests: pytest.Subtests) -> None:
    cases: list[tuple[ImportRun | None, int | None]] = [
        (None, 7),
        (ended(), HOUR),
        (ended(state="waiting", started_at=None, ended_at=None), 7),
        (ended(state="running", ended_at=None), None),
        (ended(failures=1), 6 * MINUTE),
        (ended(failures=40), HOUR),
        (ended(resumes_at=2 * HOUR), 2 * HOUR),
        (ended(resumes_at=900 * DAY), DAY + MINUTE),
    ]
    for last, at in cases:
        with subtests.test(last=last):
            assert compute_next_start(HOUR, last, 7) == at
            assert compute_next_start(None, last, 7) is None


@pytest.mark.both_databases
async def test_what_an_importer_remembers_is_kept_while_it_runs(world: ImportWorld) -> None:
    async def remembered() -> bytes | None:
        await sweep(world.database, Settings(), (), world.time())
        return await DatabaseMemory(world.database, f"import/{ID}", world.time()).get("etag")

    await world.process.work()
    world.time.advance(29 * DAY)
    assert await remembered() == b"1"
    world.system.fault = ConfigurationError("nothing is remembered of this")
    await world.process.work()
    world.time.advance(29 * DAY)
    assert await remembered() == b"1"
    world.time.advance(2 * DAY)
    assert await remembered() is None
