"""Two releases on one database: which of them works, and who waits for whom."""

import asyncio
import threading
from pathlib import Path

import psycopg
import pytest
import structlog

from factbook.errors import OutdatedError
from factbook.settings import Settings
from factbook.storage import Database, Transaction
from factbook.storage.database_url import open_database
from factbook.storage.migrations import find_pending_migrations, get_migration_texts, migrate
from factbook.worker import Worker
from tests import commands
from tests.processes import TOKEN_KEY, clean_environment
from tests.service import NOON, component, registry, started

# A release that is ahead of this one, and one that has taken something away since.
NEXT = {
    **get_migration_texts(),
    "9000_more.sql": "ALTER TABLE entities ADD COLUMN more TEXT;\nCREATE TABLE more (id INTEGER);",
    "9001_index.sql": "CREATE INDEX CONCURRENTLY entities_by_more ON entities (more);",
}
AFTER_THAT = {**NEXT, "9002_less.sql": "-- Works from: 9000\nDROP TABLE more;"}
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


def settings(database_url: str) -> Settings:
    return Settings(database_url=database_url, token_key=TOKEN_KEY)


@pytest.mark.spec("upgrades.the-release-before-goes-on")
async def test_the_release_before_works_and_starts_on_a_schema_that_was_expanded(
    database: Database, database_url: str
) -> None:
    async with started(settings(database_url)) as old:
        assert (await old.push("shop", component("web"))).status_code == 200
        assert await migrate(database, NOON, known=NEXT) == ["9000_more.sql", "9001_index.sql"]
        assert (await old.push("shop", component("web"), component("api"))).status_code == 200
        assert (await old.http.get("/readyz")).status_code == 200
        async with started(settings(database_url)) as again:
            assert await again.catalog("component:default/api") is not None
    assert await find_pending_migrations(database, NEXT) == []


@pytest.mark.spec("upgrades.an-outdated-release-refuses")
async def test_a_release_that_a_schema_has_left_behind_refuses_and_says_what_to_install(
    database: Database, database_url: str
) -> None:
    async with started(settings(database_url)) as old:
        await migrate(database, NOON, known=AFTER_THAT)
        answer = await old.http.get("/readyz")
        assert answer.status_code == 503
        assert "Install 0.1.0 or newer" in answer.json()["error"]["message"]
    with pytest.raises(OutdatedError, match=r"9002_less.*have migration 9000.*has 00\d\d at most"):
        await migrate(database, NOON)
    with pytest.raises(OutdatedError):
        async with started(settings(database_url)):
            pass
    assert await migrate(database, NOON, known=NEXT) == []


@ON_SQLITE
async def test_a_command_of_a_release_that_was_left_behind_changes_nothing_and_says_why(
    database: Database, database_url: str
) -> None:
    await migrate(database, NOON, known=AFTER_THAT)
    code, out, error = await command(database_url, "token", "create", "a")
    assert (code, out) == (1, "")
    assert "Install 0.1.0 or newer here." in error
    assert await database.all("SELECT id FROM tokens") == []


@pytest.mark.slow
@pytest.mark.spec("upgrades.an-outdated-release-refuses")
async def test_a_worker_that_a_schema_has_left_behind_ends_and_says_what_to_install(
    database: Database, database_url: str
) -> None:
    await migrate(database, NOON, known=NEXT)
    async with started(settings(database_url)) as old:
        state = old.state
        worker = Worker(state.database, state.settings, registry(old), state.clock, "a")
        with structlog.testing.capture_logs() as told:
            working = asyncio.create_task(worker.run())
            while not await database.all("SELECT 1 FROM leases"):
                assert not working.done()
                await asyncio.sleep(0)  # SQLite answers without letting others do anything
            await migrate(database, NOON, known=AFTER_THAT)
            with pytest.raises(OutdatedError):
                await asyncio.wait_for(working, 60)
        [event] = [each for each in told if each["event"] == "worker.outdated"]
        assert (event["log_level"], "Install 0.1.0 or newer" in event["reason"]) == ("error", True)


def names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


async def test_the_check_of_what_is_pending_makes_no_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/folder/factbook.db"
    code, out, _ = await command(url, "migrate", "--check")
    assert (code, out.split()) == (1, list(get_migration_texts()))
    assert names(tmp_path) == []


@ON_SQLITE
async def test_what_is_pending_is_listed_and_told_by_the_exit_code(database_url: str) -> None:
    code, out, _ = await command(database_url, "migrate", "--check")
    assert (code, out.split()) == (1, list(get_migration_texts()))
    database = await open_database(database_url, connections=3)
    assert await migrate(database, NOON) == list(get_migration_texts())
    await database.close()
    assert await command(database_url, "migrate", "--check") == (
        0, "", "The database is up to date.\n",
    )  # fmt: skip


async def command(database_url: str, *arguments: str) -> tuple[int, str, str]:
    """The exit code of a command, and what it printed."""
    variables = clean_environment() | {"FACTBOOK_TOKEN_KEY": TOKEN_KEY}
    given = [*arguments, f"--database-url={database_url}"]
    done = await asyncio.to_thread(commands.invoke, Path(), variables, *given)
    return done.exit_code, done.stdout, done.stderr


@ON_POSTGRESQL
async def test_a_migration_that_waits_for_a_table_lets_the_others_through(
    database: Database, database_url: str
) -> None:
    """A statement that waits for a table would hold up all that come after it."""
    async with started(settings(database_url)) as old:
        with psycopg.connect(database_url) as reader:
            reader.execute("SELECT count(*) FROM entities")  # a long read that does not end
            with structlog.testing.capture_logs() as told:
                upgrade = asyncio.create_task(migrate(database, NOON, known=NEXT))
                while not any(each["event"] == "migration.waiting" for each in told):
                    assert not upgrade.done()
                    assert (await old.push("shop", component("web"))).status_code == 200
                    assert await old.catalog("component:default/web") is not None
            assert await find_pending_migrations(database, NEXT) == [
                "9000_more.sql",
                "9001_index.sql",
            ]
        assert await upgrade == ["9000_more.sql", "9001_index.sql"]


@ON_POSTGRESQL
async def test_writes_go_on_while_an_index_is_made(database: Database, database_url: str) -> None:
    await migrate(database, NOON, known=dict(list(NEXT.items())[:-1]))
    async with started(settings(database_url)) as old:
        with psycopg.connect(database_url) as reader:
            # An index is ready when every transaction that began before has ended.
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT count(*) FROM sets")
            upgrade = asyncio.create_task(migrate(database, NOON, known=NEXT))
            while await index_state(database) is None:
                assert not upgrade.done()
            assert (await old.push("shop", component("web"))).status_code == 200
            other = await open_database(database_url, connections=3)
            second = asyncio.create_task(migrate(other, NOON, known=NEXT))
            assert (await old.push("shop", component("api"))).status_code == 200
            assert await index_state(database) is False
        assert [await upgrade, await second] == [["9001_index.sql"], []]
        assert await index_state(database) is True
        await other.close()


async def index_state(database: Database) -> bool | None:
    """Whether the index is valid; None when there is none."""
    row = await database.one(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('entities_by_more')"
    )
    return None if row is None else bool(row[0])


async def test_an_index_that_was_left_half_made_is_made_anew(database: Database) -> None:
    await database.write(lambda tx: tx.run("CREATE INDEX entities_by_more ON entities (name)"))
    assert await migrate(database, NOON, known=NEXT) == ["9000_more.sql", "9001_index.sql"]
    rows = await database.all("SELECT id FROM entities WHERE more = 'x'")
    assert rows == []


async def test_a_migration_waits_for_the_index_before_it(database: Database) -> None:
    assert await migrate(database, NOON, known=AFTER_THAT) == [
        "9000_more.sql",
        "9001_index.sql",
        "9002_less.sql",
    ]


async def test_who_comes_while_another_migrates_waits_for_it(
    database: Database, database_url: str
) -> None:
    begun, let_go = threading.Event(), threading.Event()

    def wait(transaction: Transaction) -> None:
        begun.set()
        assert let_go.wait(30)

    other = await open_database(database_url, connections=3)
    first = asyncio.create_task(migrate(database, NOON, {"9000_more.sql": wait}, NEXT))
    await asyncio.to_thread(begun.wait, 30)
    second = asyncio.create_task(migrate(other, NOON, known=NEXT))
    # Asked often enough for the second to have migrated, if it didn't wait.
    for _ in range(100):
        assert await find_pending_migrations(other, NEXT) == ["9000_more.sql", "9001_index.sql"]
    let_go.set()
    found = await asyncio.gather(first, second)
    assert sorted(name for names in found for name in names) == ["9000_more.sql", "9001_index.sql"]
    await other.close()
