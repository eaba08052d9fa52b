"""History and audit by month on PostgreSQL: the change, and how the months are kept."""

import asyncio
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import psycopg
import pytest

from factbook import worker
from factbook.audit.trail import MONTHLY_AUDIT, AuditEntry, Caller, append_record, make_record
from factbook.auth import users
from factbook.auth.users import Erasure
from factbook.clock import DAY, HOUR, Throttle
from factbook.errors import ConflictError
from factbook.facts import retention as fact_retention
from factbook.facts import store
from factbook.facts.datasource import DataSource, Lifecycle
from factbook.facts.freshness import Observation
from factbook.facts.schema import Fact
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.database_url import open_database
from factbook.storage.migrations import get_migration_texts, list_deviations, migrate
from factbook.storage.partitions import (
    MonthlyTable,
    PartitionStep,
    extend_partitions,
    fetch_bound,
    list_partitions,
    partition_table,
    plan_partitioning,
)
from tests.facts.test_store import add_entities
from tests.postgresql import PostgreSQLServer
from tests.waiting import soon

HISTORY, AUDIT = fact_retention.MONTHLY_HISTORY, MONTHLY_AUDIT
WEB, API = "component:default/web", "component:default/api"


def ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc, arg-type]


NOW = ms(2026, 11, 21, 12)
# A month and the rest of the next are left to what is there.
BOUND = ms(2027, 1, 1)


def source(id_: str, lifecycle: Lifecycle | None = None) -> DataSource:
    schema = (Fact("lines", "integer"),)
    return DataSource(id=id_, title=id_, version="1", schema=schema, lifecycle=lifecycle)


MONTH_KEPT = source("month", Lifecycle(time_to_live={"days": 30}))
FOREVER = source("forever")


@pytest.fixture
def url(postgresql_server: PostgreSQLServer, migrated_name: str) -> Iterator[str]:
    with postgresql_server.database(f"test_{secrets.token_hex(8)}", like=migrated_name) as url:
        yield url


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    database = await open_database(url, connections=6)
    await add_entities(database, WEB, API)
    yield database
    await database.close()


async def record(database: Database, at: int, lines: int, of: DataSource = FOREVER) -> None:
    await database.write(
        lambda tx: store.record_facts(tx, of, [Observation(1, {"lines": lines})], at)
    )


async def note(database: Database, at: int) -> None:
    record = make_record(Caller("user:default/kim", at), AuditEntry("set.push", "a"))
    await database.write(lambda tx: append_record(tx, record))


def ignore(_: PartitionStep) -> None:
    """Show nothing."""


async def divide(database: Database, *tables: MonthlyTable, now: int = NOW) -> None:
    for table in tables or (HISTORY, AUDIT):
        await partition_table(database, table, now, ignore)


async def places(database: Database, table: MonthlyTable = HISTORY) -> list[tuple[str, int]]:
    """The names of the partitions, with the number of rows of each."""
    found = await list_partitions(database, table)
    return [(one.name, await count(database, one.name)) for one in found]


COUNT = "SELECT COUNT(*) FROM {}"


async def count(database: Database, table: str) -> int:
    [number] = await database.one(COUNT.format(table)) or (0,)
    return int(number)


async def covered(database: Database, table: MonthlyTable = HISTORY) -> bool:
    """True if the partitions cover all time, without gaps."""
    found = await list_partitions(database, table)
    edges = [one.end for one in found[:-1]] == [one.start for one in found[1:]]
    return edges and found[0].start is None and found[-1].end is None


async def test_what_is_there_becomes_the_first_partition_and_months_follow(
    database: Database,
) -> None:
    await record(database, NOW - 400 * DAY, 1)
    await record(database, NOW, 2)
    await divide(database)
    assert await places(database) == [
        ("facts_history_before", 2),
        *((f"facts_history_2027_0{month}", 0) for month in (1, 2)),
        ("facts_history_later", 0),
    ]
    assert await covered(database)
    assert await covered(database, AUDIT)
    assert await partition_table(database, HISTORY, NOW, ignore) == 0


async def test_rows_go_to_their_months_and_no_time_is_without_a_place(database: Database) -> None:
    await divide(database)
    times = [1, BOUND - 1, BOUND, ms(2027, 2, 1), ms(2031, 1, 1), 2**62]
    for number, at in enumerate(times):
        await record(database, at, number)
    assert [number for _, number in await places(database)] == [2, 1, 1, 2]


async def test_the_schema_stays_the_one_that_the_release_expects(database: Database) -> None:
    await divide(database)
    assert await list_deviations(database) == []


async def test_the_first_step_looks_at_no_row_under_a_lock(database: Database, url: str) -> None:
    await record(database, NOW, 1)
    steps = await plan_partitioning(database, HISTORY, NOW)
    for step in steps[:-1]:
        await step.do(database)
    before = scans(url)
    await steps[-1].do(database)
    assert scans(url) == before


def scans(url: str) -> Any:
    """How often the rows of history were read from the first to the last."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        found = connection.execute(
            "SELECT seq_scan FROM pg_stat_user_tables "
            "WHERE relname IN ('facts_history_before', 'facts_history') AND n_live_tup > 0"
        )
        return found.fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("done", [0, 1, 2])
@pytest.mark.parametrize("table", [HISTORY, AUDIT], ids=["history", "audit"])
async def test_a_change_that_was_ended_goes_on_there(
    database: Database, url: str, table: MonthlyTable, done: int
) -> None:
    await record(database, NOW, 1)
    await note(database, NOW)
    for step in (await plan_partitioning(database, table, NOW))[:done]:
        await step.do(database)
    left = await plan_partitioning(database, table, NOW + DAY)
    assert len(left) == 3 - done
    # Whoever is killed in a step leaves nothing of it.
    await killed_in(left[0], url)
    assert len(await plan_partitioning(database, table, NOW + DAY)) == 3 - done
    await record(database, NOW + DAY, 2)
    await note(database, NOW + DAY)
    await divide(database, table, now=NOW + DAY)
    assert await fetch_bound(database, table) is None
    assert await count(database, table.name) == 2
    assert await list_deviations(database) == []


async def killed_in(step: PartitionStep, url: str) -> None:
    """Begin a step that has to wait for a lock, and end its server process there."""
    other = await open_database(url, connections=3)
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as killer:
        holder.execute(f"LOCK TABLE {step.table} IN ROW SHARE MODE")
        holder.execute(f"LOCK TABLE {step.table} IN SHARE UPDATE EXCLUSIVE MODE")
        working = asyncio.create_task(step.do(other))

        async def is_killed() -> bool:
            cursor = killer.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid) "
                "WHERE NOT granted AND datname = current_database() AND relation = to_regclass(%s)",
                (step.table,),
            )
            return bool(cursor.fetchall()) or working.done()

        await soon(is_killed)
        working.cancel()
        await asyncio.wait({working})
    await other.close()


async def test_facts_are_written_all_the_while(database: Database, url: str) -> None:
    writer = await open_database(url, connections=6)
    written, stop = 0, asyncio.Event()

    async def write() -> None:
        nonlocal written
        while not stop.is_set():
            written += 1
            await record(writer, NOW + written, written)
            await note(writer, NOW + written)

    working = asyncio.create_task(write())
    await soon(lambda: count_is(database, "audit", 3))
    await divide(database)
    done = written
    await soon(lambda: count_is(database, "audit", done + 3))
    stop.set()
    await working
    await writer.close()
    assert await count(database, "facts_history") == written
    assert await count(database, "audit") == written
    found = await store.find_latest(database, FOREVER.id, 1)
    assert found is not None
    assert found.facts == {"lines": written}


async def count_is(database: Database, table: str, number: int) -> bool:
    return await count(database, table) >= number


async def test_two_changes_at_once_are_one(database: Database, url: str) -> None:
    other = await open_database(url, connections=3)
    await asyncio.gather(divide(database), divide(other))
    await other.close()
    assert await covered(database)
    assert await covered(database, AUDIT)
    assert await list_deviations(database) == []


async def test_rows_of_a_clock_far_ahead_refuse_the_change(database: Database) -> None:
    await record(database, NOW + 500 * DAY, 1)
    with pytest.raises(ConflictError, match="a clock was ahead"):
        await divide(database, HISTORY)
    assert await fetch_bound(database, HISTORY) is None


async def test_rows_of_a_clock_a_little_ahead_are_before_the_months(database: Database) -> None:
    await record(database, NOW + 100 * DAY, 1)
    await divide(database, HISTORY)
    assert (await places(database))[0] == ("facts_history_before", 1)
    assert await covered(database)


async def test_a_bound_that_the_present_has_nearly_met_is_replaced(database: Database) -> None:
    [first, *_] = await plan_partitioning(database, HISTORY, NOW)
    await first.do(database)
    later = BOUND - DAY
    assert len(await plan_partitioning(database, HISTORY, later)) == 3
    await divide(database, HISTORY, now=later)
    assert (await list_partitions(database, HISTORY))[0].end == ms(2027, 2, 1)


async def test_housekeeping_undoes_an_abandoned_change_before_it_refuses_a_row(
    database: Database,
) -> None:
    [first, *_] = await plan_partitioning(database, HISTORY, NOW)
    await first.do(database)
    await keep(database, NOW)
    assert await fetch_bound(database, HISTORY) is not None
    await keep(database, BOUND - DAY)
    assert await fetch_bound(database, HISTORY) is None
    await record(database, BOUND, 1)


async def keep(database: Database, now: int, *sources: DataSource, **settings: Any) -> None:
    """A round of the housekeeping of history and audit."""
    given = worker.Round(
        database, Settings(**settings), sources or (FOREVER,), now, now, Throttle()
    )
    for part in ("history", "audit"):
        await worker.SWEEPS[part](given)


async def test_housekeeping_creates_the_coming_months(database: Database) -> None:
    await divide(database)
    await keep(database, NOW)
    names = [name for name, _ in await places(database)]
    await keep(database, ms(2027, 1, 1))
    later = [name for name, _ in await places(database)]
    assert set(later) - set(names) == {"facts_history_2027_03", "facts_history_2027_04"}
    assert await covered(database)
    assert await covered(database, AUDIT)
    assert await list_deviations(database) == []


async def test_rows_that_came_before_their_month_move_into_it(database: Database) -> None:
    await divide(database)
    await record(database, ms(2027, 4, 5), 1)
    await record(database, ms(2029, 4, 5), 2)
    assert dict(await places(database))["facts_history_later"] == 2
    await keep(database, ms(2027, 1, 1))
    assert dict(await places(database))["facts_history_2027_04"] == 1
    assert dict(await places(database))["facts_history_later"] == 1


async def test_a_clock_far_ahead_or_set_back_makes_no_months(database: Database) -> None:
    await divide(database)
    before = await places(database)
    for now in (0, NOW - 800 * DAY, NOW + 4000 * DAY, 2**62):
        await extend_partitions(database, HISTORY, now)
    assert await places(database) == before


async def test_months_of_a_long_pause_are_made_afterwards(database: Database) -> None:
    await divide(database)
    await record(database, ms(2028, 1, 15), 1)
    await extend_partitions(database, HISTORY, ms(2028, 1, 15))
    assert dict(await places(database))["facts_history_2028_01"] == 1
    assert await covered(database)


async def test_months_of_which_nothing_is_kept_are_dropped(database: Database) -> None:
    await divide(database)
    for month in range(1, 4):
        await extend_partitions(database, HISTORY, ms(2027, month, 2))
        await record(database, ms(2027, month, 2), month, MONTH_KEPT)
    await keep(database, ms(2027, 3, 3), MONTH_KEPT)
    assert await covered(database)
    rows = dict(await places(database))
    # What ended with January holds nothing: its rows went with their partitions.
    assert "facts_history_before" not in rows
    assert rows["facts_history_2027_01"] == 0
    assert rows["facts_history_2027_02"] == 1
    assert rows["facts_history_2027_03"] == 1


async def test_a_month_is_kept_while_a_source_keeps_one_of_its_rows(database: Database) -> None:
    await divide(database)
    await record(database, BOUND, 1, MONTH_KEPT)
    await record(database, BOUND, 1, FOREVER)
    await record(database, BOUND + 40 * DAY, 2, MONTH_KEPT)
    await keep(database, BOUND + 100 * DAY, MONTH_KEPT, FOREVER)
    found = await database.all("SELECT source_id FROM facts_history")
    assert found == [("forever",)]
    assert dict(await places(database))["facts_history_2027_01"] == 1


async def test_an_old_row_that_is_confirmed_again_and_again_keeps_its_month(
    database: Database,
) -> None:
    await divide(database)
    hourly = MONTH_KEPT
    for day in range(100):
        await record(database, BOUND + day * DAY, 1, hourly)
    assert await count(database, "facts_history") == 1
    await keep(database, BOUND + 100 * DAY, hourly)
    assert dict(await places(database))["facts_history_2027_01"] == 1


async def test_a_row_that_is_confirmed_keeps_the_month_with_its_long_values(
    database: Database,
) -> None:
    await divide(database)
    schema = (*MONTH_KEPT.schema, Fact("files", "set"))
    files = [f"src/module_{number}.py" for number in range(100)]
    of = replace(MONTH_KEPT, schema=schema)
    begin = ms(2027, 1, 31, 23)
    for day in range(101):
        facts = {"lines": min(day, 1), "files": files}
        at = begin + max(0, day * DAY - 20 * HOUR)
        await database.write(
            partial(store.record_facts, source=of, observations=[Observation(1, facts)], now=at)
        )
    assert await count(database, "facts_history") == 2
    await keep(database, begin + 100 * DAY, of)
    assert dict(await places(database))["facts_history_2027_01"] == 1
    await keep(database, begin + 131 * DAY, of)
    assert await count(database, "facts_history") == 0


async def test_old_facts_can_be_written_after_their_month_was_dropped(database: Database) -> None:
    await record(database, NOW, 1, MONTH_KEPT)
    await divide(database)
    await keep(database, ms(2027, 5, 5), MONTH_KEPT)
    assert await count(database, "facts_history") == 0
    await record(database, NOW, 7, FOREVER)
    assert await count(database, "facts_history") == 1


async def test_months_of_the_audit_go_after_its_days(database: Database) -> None:
    await note(database, NOW)
    await divide(database)
    for at in (BOUND, BOUND + 31 * DAY, BOUND + 100 * DAY):
        await note(database, at)
    await keep(database, BOUND + 100 * DAY, audit_days=50)
    assert [at for (at,) in await database.all("SELECT at FROM audit")] == [BOUND + 100 * DAY]
    assert await covered(database, AUDIT)


async def test_a_partitioned_audit_is_as_closed_as_before(database: Database, url: str) -> None:
    await note(database, NOW)
    await divide(database, AUDIT)
    await note(database, BOUND)
    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("audit", "audit_before", "audit_2027_01"):
            for statement in ("UPDATE {} SET actor = ''", "TRUNCATE {}"):
                with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
                    connection.execute(statement.format(table).encode())
        with pytest.raises(psycopg.errors.RaiseException, match="Only the oldest"):
            connection.execute("DELETE FROM audit_2027_01")
    assert await count(database, "audit") == 2


async def test_an_erasure_changes_records_of_any_month_and_nothing_else(
    database: Database, url: str
) -> None:
    await note(database, NOW)
    await divide(database, AUDIT)
    await note(database, BOUND)
    await check_erasure(database, url)


async def check_erasure(database: Database, url: str) -> None:
    """The audit and its partitions take the pseudonym of an open erasure, and nothing else."""
    erasure = Erasure("erased-1f3a9c0d", frozenset({"user:default/kim"}))
    await database.write(lambda tx: users.save_erasure(tx, "user:default/kim", erasure, NOW))
    with psycopg.connect(url, autocommit=True) as connection:
        for table in ("audit", "audit_before", "audit_2027_01"):
            statements = f"UPDATE erasures SET is_open = 1; UPDATE {table} SET object = 'x'"  # noqa: S608
            with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
                connection.execute(statements.encode())
    renamed = "UPDATE audit SET actor = 'user:default/erased-1f3a9c0d', address = ''"
    work = users.open_for_erasure(erasure, lambda tx: tx.run(renamed))
    assert await database.write(work) == 2


async def test_a_partitioned_audit_of_an_earlier_release_is_as_closed(
    postgresql_server: PostgreSQLServer,
) -> None:
    earlier = {name: text for name, text in get_migration_texts().items() if name < "0044"}
    with postgresql_server.database(f"test_{secrets.token_hex(8)}") as url:
        database = await open_database(url, connections=3)
        try:
            await migrate(database, NOW, known=earlier)
            await note(database, NOW)
            await divide(database, AUDIT)
            await note(database, BOUND)
            assert "0044_erasures.sql" in await migrate(database, NOW)
            await check_erasure(database, url)
        finally:
            await database.close()


async def test_a_long_read_delays_the_months_and_nothing_else(database: Database, url: str) -> None:
    await divide(database, HISTORY)
    with psycopg.connect(url) as reader:
        reader.execute("SELECT * FROM facts_history")
        await keep(database, ms(2027, 1, 1))
        await record(database, NOW, 1)
        assert "facts_history_2027_04" not in dict(await places(database))
    await keep(database, ms(2027, 1, 1))
    assert "facts_history_2027_04" in dict(await places(database))


async def test_a_migration_makes_an_index_on_every_partition(database: Database) -> None:
    await divide(database, HISTORY)
    text = "CREATE INDEX CONCURRENTLY facts_history_by_version ON facts_history (version);\n"
    name = "9999_by_version.sql"
    assert await migrate(database, NOW, known={**get_migration_texts(), name: text}) == [name]
    found = await database.all(
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
        "WHERE i.indisvalid AND c.relname LIKE 'facts_history%' "
        "AND pg_get_indexdef(i.indexrelid) LIKE '%(version)' ORDER BY 1"
    )
    parts = [one.name for one in await list_partitions(database, HISTORY)]
    assert [row[0] for row in found] == sorted(["facts_history", *parts])


async def test_rights_of_others_stay(database: Database, url: str) -> None:
    role = f"reader_{secrets.token_hex(4)}"
    await record(database, NOW, 1)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role}".encode())
        try:
            connection.execute(f"GRANT SELECT ON facts_history TO {role}".encode())
            await divide(database, HISTORY)
            connection.execute(f"SET ROLE {role}".encode())
            seen = connection.execute("SELECT count(*) FROM facts_history").fetchone()
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("DELETE FROM facts_history")
            connection.execute("RESET ROLE")
        finally:
            connection.execute(f"DROP OWNED BY {role}".encode())
            connection.execute(f"DROP ROLE {role}".encode())
    assert seen == (1,)


async def test_a_dump_brings_partitions_back(
    database: Database, url: str, postgresql_server: PostgreSQLServer
) -> None:
    await record(database, NOW, 1)
    await divide(database)
    await record(database, BOUND, 2)
    await note(database, BOUND)
    programs = [path for (path,) in await database.all(PROGRAMS)]
    with postgresql_server.database(f"test_{secrets.token_hex(8)}") as other:
        dump = await ran([f"{programs[0]}/pg_dump", "--format=custom", url])
        await ran(
            [f"{programs[0]}/pg_restore", "--no-owner", "--exit-on-error", "--dbname", other], dump
        )
        restored = await open_database(other, connections=3)
        assert await list_deviations(restored) == []
        assert await places(restored) == await places(database)
        assert await places(restored, AUDIT) == await places(database, AUDIT)
        await keep(restored, ms(2027, 1, 1))
        await restored.close()


async def ran(command: list[str], given: bytes = b"") -> bytes:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    answer, _ = await process.communicate(given)
    assert process.returncode == 0
    return answer


PROGRAMS = "SELECT setting FROM pg_config WHERE name = 'BINDIR'"


async def test_pages_of_history_read_no_more_months_than_they_need(
    database: Database, url: str
) -> None:
    await divide(database, HISTORY)
    for month in range(1, 5):
        await extend_partitions(database, HISTORY, ms(2027, month, 2))
        for day in range(1, 21):
            await record(database, ms(2027, month, day), 100 * month + day)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")
        plan = connection.execute(
            "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT source_id, written_at, facts "
            "FROM facts_history WHERE entity_id = 1 AND written_at >= 0 "
            "AND (written_at, source_id) < (9223372036854775807, '') "
            "ORDER BY written_at DESC, source_id DESC LIMIT 10"
        ).fetchall()
    text = "\n".join(line for (line,) in plan)
    assert "Sort" not in text
    # Of months from the newest back: those that are not needed are not looked at.
    assert "never executed" in text.partition("facts_history_2027_01")[2]
