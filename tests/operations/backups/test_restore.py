"""`factbook restore`: the service answers as at the backup, and nobody mistakes what came after."""

import asyncio
import resource
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from factbook.errors import ConflictError, InputError, UnavailableError
from factbook.events.store import number_new_events
from factbook.operations import backups
from tests.conftest import StartService
from tests.events.feed import EVENTS, events, page
from tests.operations.backups.conftest import HOUR_LATER, Installation, answers, backed_up, rows
from tests.service import NOON, component
from tests.storage import first_schema


@pytest.mark.spec("backups.restore-answers-the-same")
async def test_after_a_restore_the_service_answers_as_at_the_backup(
    installation: Installation,
) -> None:
    made, token, before = await backed_up(installation)
    done = await installation.restore(made)
    async with installation.running() as service:
        assert await answers(service, token) == before
        assert (await service.push("two", component("again"))).status_code == 200
    assert installation.file.stat().st_mode & 0o077 == 0
    assert rows(installation.file, "SELECT 1 FROM sqlite_master WHERE name LIKE '%backup%'") == []
    assert done.migrations == []


async def test_what_was_there_is_put_aside_whole(installation: Installation) -> None:
    made, _, _ = await backed_up(installation)
    done = await installation.restore(made)
    assert done.aside == installation.folder / "factbook.db.before-20261121T130000Z"
    assert done.aside is not None
    assert rows(done.aside, "SELECT name FROM sets ORDER BY 1") == [("one",), ("two",)]
    key = done.aside.with_name(f"{done.aside.name}.key")
    assert key.read_text() == installation.key.read_text()


async def test_on_another_machine_a_backup_brings_its_key(
    installation: Installation, tmp_path: Path
) -> None:
    made, token, before = await backed_up(installation)
    elsewhere = Installation(tmp_path / "elsewhere")
    done, fits = await elsewhere.restored(made, replace=False)
    assert (done.key_restored, done.aside, fits) == (True, None, True)
    assert elsewhere.key.stat().st_mode & 0o777 == 0o600
    async with elsewhere.running() as service:
        assert await answers(service, token) == before


async def test_a_restore_under_another_key_of_the_settings_is_told(
    installation: Installation, tmp_path: Path
) -> None:
    made, _, _ = await backed_up(installation)
    elsewhere = Installation(tmp_path / "elsewhere", token_key="k" * 32)
    _, fits = await elsewhere.restored(made)
    assert fits is False


@pytest.mark.slow
async def test_a_database_that_is_open_or_not_to_be_replaced_is_left_alone(
    installation: Installation,
) -> None:
    made, _, _ = await backed_up(installation)
    with pytest.raises(ConflictError, match="--force moves it aside"):
        await installation.restore(made, replace=False)
    before = installation.left()
    async with installation.running() as service:
        with pytest.raises(ConflictError, match="open in another process"):
            # The lock of a process does not keep out the process itself.
            await in_another_process(installation, made)
        assert (await service.push("two", component("more"))).status_code == 200
    assert installation.left() == before


async def in_another_process(installation: Installation, made: Path) -> None:
    """Restore as a command does; raises ConflictError with what it says."""
    code = "from factbook.cli import main; main()"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, "restore", str(made), "--force"),
        *("--database-url", installation.settings.database_url),
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    if process.returncode == 1:
        raise ConflictError(said.decode())


@pytest.mark.slow
@pytest.mark.spec("backups.feed-begins-anew")
async def test_a_reader_of_the_feed_is_told_to_begin_anew_and_no_id_comes_again(
    installation: Installation,
) -> None:
    made, _, _ = await backed_up(installation)
    async with installation.running() as service:
        told = await events(service)
        cursor = (await page(service, after="now"))["nextCursor"]
        early = (await page(service, limit=1))["nextCursor"]
    await installation.restore(made)
    async with installation.running() as service:
        for after in (cursor, early):
            answer = await service.http.get(EVENTS, params={"after": after})
            assert answer.status_code == 410, after
        begin = await page(service)
        assert begin["events"] == []
        for number in range(3):
            await service.push("two", component(f"new-{number}"))
        again = await events(service, after=begin["nextCursor"])
    assert again
    assert {one["id"] for one in again}.isdisjoint(one["id"] for one in told)


@pytest.mark.slow
async def test_a_second_restore_within_the_same_moment_gives_no_id_again(
    installation: Installation,
) -> None:
    made, _, _ = await backed_up(installation)
    told: list[str] = []
    for number in range(2):
        await installation.restore(made, now=NOON - 10**12 + number * 1_000)
        async with installation.running() as service:
            await service.push("two", component("new"))
            told += [one["id"] for one in await events(service)]
    assert len(set(told)) == len(told) > 2


async def test_webhooks_go_on_with_what_happens_after_the_restore(
    installation: Installation,
) -> None:
    async with installation.running() as service:
        answer = await service.http.post(
            "/api/events/webhooks", json={"url": "https://receiver.example/", "types": []}
        )
        assert answer.status_code == 201, answer.text
        await service.push("one", component("web"))
        await service.state.database.write(
            lambda tx: tx.run(
                "INSERT INTO webhook_retries SELECT id, '1-0', 'set.replaced', '{}', 1, 1, 1, 'x' "
                "FROM webhook_endpoints"
            )
        )
        made = await installation.backup()
    await installation.restore(made)
    async with installation.running() as service:
        assert await service.state.database.all("SELECT * FROM webhook_retries") == []
        ahead = await service.state.database.all(
            "SELECT next_position > (SELECT value FROM counters WHERE name = 'event') "
            "FROM webhook_endpoints"
        )
        assert ahead == [(1,)]
        await number_new_events(service.state.database)
        waiting = await service.state.database.all(
            "SELECT COUNT(*) FROM events e, webhook_endpoints w WHERE e.position >= w.next_position"
        )
        await service.push("one", component("api"))
        await number_new_events(service.state.database)
        after = await service.state.database.all(
            "SELECT COUNT(*) FROM events e, webhook_endpoints w WHERE e.position >= w.next_position"
        )
    assert waiting == [(0,)]
    assert after[0][0] > 0


async def test_sessions_and_invitations_from_before_are_over(installation: Installation) -> None:
    async with installation.running() as service:
        await service.state.database.write(
            lambda tx: tx.run(
                "INSERT INTO sessions VALUES ('h', 'user:default/a', 1, 1, 9e12, '', '')"
            )
        )
        await service.state.database.write(
            lambda tx: tx.run(
                "INSERT INTO oauth_consents "
                "VALUES ('c', 'user:default/a', 'client', '', '', '', '[]', 1, NULL, 9e12)"
            )
        )
        made = await installation.backup()
    await installation.restore(made)
    assert rows(installation.file, "SELECT COUNT(*) FROM sessions") == [(0,)]
    assert rows(installation.file, "SELECT COUNT(*) FROM oauth_consents") == [(0,)]
    found = rows(installation.file, "SELECT object FROM audit WHERE action = 'database.restore'")
    assert found == [(made.name,)]


@pytest.mark.slow
async def test_a_backup_of_the_first_schema_is_brought_up_to_date(
    installation: Installation,
) -> None:
    await first_schema.make(installation.settings.database_url, entities=3)
    made = await installation.backup()
    done = await installation.restore(made)
    assert done.migrations[0] == "0002_catalog_queries.sql"
    async with installation.running() as service:
        found = (await service.http.get("/api/catalog/entities")).json()
    assert len(found) == 3
    # The backup itself is as it was.
    assert rows(made, "SELECT name FROM schema_migrations") == [("0001_initial.sql",)]


@pytest.mark.slow
async def test_a_copy_that_cannot_be_finished_changes_nothing(installation: Installation) -> None:
    await first_schema.make(installation.settings.database_url)
    with closing(sqlite3.connect(installation.file)) as database, database:
        database.execute("CREATE TABLE others AS SELECT zeroblob(4000000)")
    made = await installation.backup()
    left, before = installation.left(), installation.file.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The log has room for the migrations, and the file has none to grow.
    resource.setrlimit(resource.RLIMIT_FSIZE, (made.stat().st_size, hard))
    try:
        with pytest.raises(UnavailableError, match="could not be copied: disk I/O error"):
            await installation.restore(made)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert installation.left() == left
    assert installation.file.read_bytes() == before


def test_a_copy_that_somebody_else_reads_is_not_taken_for_finished(tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    with (
        closing(sqlite3.connect(file, isolation_level=None)) as writer,
        closing(sqlite3.connect(file, isolation_level=None)) as reader,
    ):
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE letters (text)")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM letters").fetchall()
        writer.execute("INSERT INTO letters VALUES ('a')")
        with pytest.raises(UnavailableError, match="is open in another process"):
            backups.make_whole(file)
        reader.execute("COMMIT")
        backups.make_whole(file)
        assert file.with_name("copy.db-wal").stat().st_size == 0


async def test_a_damaged_database_is_put_aside_and_nothing_of_it_stays_beside_the_new_one(
    installation: Installation,
) -> None:
    made, token, before = await backed_up(installation)
    installation.file.write_bytes(b"\xff" * 8192)
    wal = installation.file.with_name("factbook.db-wal")
    wal.write_bytes(b"\xff" * 4096)
    done = await installation.restore(made)
    assert done.aside is not None
    assert done.aside.read_bytes() == b"\xff" * 8192
    assert wal.exists() is False
    async with installation.running() as service:
        assert await answers(service, token) == before


async def test_a_database_that_was_put_back_by_other_means_is_settled(
    start: StartService,
) -> None:
    service = await start()
    await service.push("one", component("web"))
    cursor = (await page(service, after="now"))["nextCursor"]
    told = await events(service)
    application = service.application
    first = await backups.settle_restored(application, lambda: HOUR_LATER)
    answer = await service.http.get(EVENTS, params={"after": cursor})
    assert answer.status_code == 410
    await service.push("one", component("web"), component("api"))
    again = await events(service)
    assert int(again[0]["id"].partition("-")[0]) == first > HOUR_LATER
    assert {one["id"] for one in again}.isdisjoint(one["id"] for one in told)


async def test_a_backup_that_changed_since_is_refused(installation: Installation) -> None:
    made, _, _ = await backed_up(installation)
    before = installation.file.read_bytes()
    with closing(sqlite3.connect(made, isolation_level=None)) as database:
        database.execute("UPDATE tokens SET owner = 'user:default/mallory'")
    with pytest.raises(InputError, match="doesn't fit its checksum"):
        await installation.restore(made)
    assert installation.file.read_bytes() == before


async def test_a_backup_without_a_checksum_is_restored(installation: Installation) -> None:
    made, _, _ = await backed_up(installation)
    with closing(sqlite3.connect(made)) as database:
        database.execute("ALTER TABLE factbook_backup DROP COLUMN checksum")
    done = await installation.restore(made)
    assert done.note is not None
    assert (done.note.checksum, done.unrecognized) == (None, [])


async def test_a_restore_names_what_it_does_not_recognize(installation: Installation) -> None:
    made, _, _ = await backed_up(installation)
    with closing(sqlite3.connect(made)) as database:
        # As whoever may change a backup could also make its checksum fit.
        database.executescript(
            "ALTER TABLE factbook_backup DROP COLUMN checksum;"
            "CREATE TRIGGER promotion AFTER INSERT ON people BEGIN "
            "UPDATE people SET role = 'administrator'; END;"
            "CREATE VIEW everybody AS SELECT * FROM people;"
            "CREATE TABLE more (id INTEGER);"
            "DROP TRIGGER audit_is_kept;"
        )
    assert (await installation.restore(made)).unrecognized == [
        "table more was not created by Factbook",
        "trigger promotion on people was not created by Factbook",
        "view everybody was not created by Factbook",
        "trigger audit_is_kept on audit is missing",
    ]
