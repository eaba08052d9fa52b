"""A real service whose disk is full, or whose file may only be read."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from factbook.storage.database_url import open_database
from factbook.storage.migrations import get_migration_texts, migrate
from tests.processes import FACTBOOK, ServerProcess, clean_environment, serving
from tests.service import NOON, PUSH, TOOLS, call, component
from tests.sqlite_log import empty_log
from tests.system.disks import disk, filled
from tests.waiting import until

pytestmark = pytest.mark.system

MIB = 1024 * 1024
ENTITIES = 1_000
FULL = "The disk that holds the database is full, so nothing can be written to it."
SET = f"{PUSH}/sets/all"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with disk(tmp_path / "disk", 256 * MIB) as folder:
        yield folder


def content(version: int) -> dict[str, Any]:
    """A set of a few megabytes, of which every entity changes with the version."""
    text = f"{version}" * 1_000
    names = [f"c-{n}" if n % 3 else f"c-{n}-v{version}" for n in range(ENTITIES)]
    return {"items": [component(name, version=version, text=text) for name in names]}


def version_of(http: httpx2.Client) -> int:
    """Which version the set holds, whole."""
    items = http.get(SET).json()["items"]
    [version] = {item["entity"]["spec"]["version"] for item in items}
    listed = http.get("/api/catalog/entities", params={"filter": "spec.version"}).json()
    assert len(items) == len(listed) == ENTITIES
    return int(version)


def asked(http: httpx2.Client) -> int:
    """The status of a tool call about what every version has."""
    arguments = {"dataSourceId": "entity-metadata", "name": "c-1"}
    answer = http.post(TOOLS, json=call("get-entity-facts", arguments))
    assert answer.json()["result"]["isError"] is False
    return answer.status_code


def log_of(server: ServerProcess) -> list[dict[str, Any]]:
    """The events that it logged."""
    lines = server.log.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def is_sound(file: Path) -> bool:
    with closing(sqlite3.connect(file)) as database:
        return bool(database.execute("PRAGMA integrity_check").fetchone() == ("ok",))


@pytest.mark.spec("faults.sqlite-disk-full-or-read-only")
def test_a_full_disk_stops_writes_until_there_is_room_and_loses_nothing(
    small_disk: Path, tmp_path: Path
) -> None:
    file = small_disk / "factbook.db"
    with serving(f"sqlite:///{file}", tmp_path) as server, server.client(server.token()) as http:
        assert http.put(SET, json=content(1)).status_code == 200
        last, refusals = 1, 0
        # The later the disk is full, the further a push gets before that.
        for version, left in enumerate((0, 200_000, 1 * MIB, 2 * MIB, 64 * MIB, 0), 2):
            # The file of the log would have room for a push.
            empty_log(file)
            with filled(small_disk, left=left):
                answer = http.put(SET, json=content(version))
                if answer.status_code == 200:
                    last = version
                else:
                    refusals += 1
                    assert answer.status_code == 503, answer.text
                    assert answer.json()["error"]["message"] == FULL
                    ready = http.get("/readyz")
                    assert (ready.status_code, ready.json()["writes"]) == (200, FULL)
                assert (version_of(http), asked(http)) == (last, 200)
            answer = http.put(SET, json=content(100 + version))
            assert answer.status_code == 200, answer.text
            last = 100 + version
            assert version_of(http) == last
            assert http.get("/readyz").json() == {"status": "ready"}
        assert refusals >= 4
        [pid] = {server.pid}
        events = [one["event"] for one in log_of(server)]
        assert events.count("database.unwritable") == events.count("database.writable") == refusals
        assert not [event for event in events if event.endswith(".failed")]
        server.stop()
        server.start()
        assert version_of(http) == last
        assert server.pid != pid
        server.stop()
    assert is_sound(file)


def test_a_service_whose_log_has_no_room_goes_on_answering(small_disk: Path) -> None:
    with serving(f"sqlite:///{small_disk}/factbook.db", small_disk) as server:
        with server.client(server.token()) as http:
            assert http.put(SET, json=content(1)).status_code == 200
            with filled(small_disk):
                for _ in range(3):
                    assert http.put(SET, json=content(2)).status_code == 503
                assert (version_of(http), asked(http)) == (1, 200)
            assert http.put(SET, json=content(3)).status_code == 200
            assert version_of(http) == 3
        told = [line for line in server.log.read_text().splitlines() if '"set.pushed"' in line]
        assert len(told) == 2


def told(file: Path) -> dict[str, str]:
    """The environment of a command on this file."""
    given = {"FACTBOOK_DATABASE_URL": f"sqlite:///{file}", "FACTBOOK_TOKEN_KEY": "k" * 40}
    return clean_environment() | given


def refused(folder: Path, file: Path, environment: dict[str, str] | None = None) -> list[str]:
    """What `factbook serve` says beside its log and ends with, for whom permissions count."""
    bound = [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override"]
    done = subprocess.run(
        [*bound, FACTBOOK, "serve", "--port", "0"],
        env=environment or told(file),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return [line for line in done.stderr.splitlines() if not line.startswith("{")]


@pytest.mark.spec("faults.sqlite-start-on-a-full-disk")
@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_service_that_starts_on_a_full_disk_reads_until_there_is_room(
    small_disk: Path, tmp_path: Path, workers: str, *, killed: bool
) -> None:
    file = small_disk / "factbook.db"
    with serving(f"sqlite:///{file}", tmp_path) as server, server.client(server.token()) as http:
        assert http.put(SET, json=content(1)).status_code == 200
        server.stop(signal.SIGKILL if killed else signal.SIGTERM)
        with filled(small_disk):
            without_index(file, small_disk)
            server.start("--workers", workers)
            for _ in range(4):  # of either process
                assert (version_of(http), asked(http)) == (1, 200)
                answer = http.put(SET, json=content(2))
                assert (answer.status_code, answer.json()["error"]["message"]) == (503, FULL)
                ready = httpx2.get(f"{server.url}/readyz", timeout=60)
                assert (ready.status_code, ready.json()["writes"]) == (200, FULL)
            assert (
                "Nobody has an account yet, and no link can be made now" in server.log.read_text()
            )
        assert http.put(SET, json=content(3)).status_code == 200
        for _ in range(4):
            assert version_of(http) == 3
            assert httpx2.get(f"{server.url}/readyz", timeout=60).json() == {"status": "ready"}
        told = [one for one in log_of(server) if one["event"] == "database.unwritable"]
        assert {one["reason"] for one in told} == {FULL}
        server.stop()
    assert is_sound(file)


def without_index(file: Path, folder: Path) -> None:
    """Leave no room for the index of the log, which a killed service keeps its room for."""
    file.with_name("factbook.db-shm").unlink(missing_ok=True)
    with suppress(OSError), (folder / "filler").open("ab", buffering=0) as filler:
        while True:
            filler.write(b"\0" * 4096)


def test_a_worker_that_starts_on_a_full_disk_works_when_there_is_room(
    small_disk: Path, tmp_path: Path
) -> None:
    file = small_disk / "factbook.db"
    with serving(f"sqlite:///{file}", tmp_path):
        pass
    log = tmp_path / "worker.log"
    with log.open("wb") as opened, filled(small_disk):
        worker = subprocess.Popen([FACTBOOK, "worker"], env=told(file), cwd=tmp_path, stderr=opened)
        seen(log, '"worker.unavailable"')
    try:
        seen(log, '"database.writable"')
        worker.terminate()
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait()


def seen(log: Path, text: str) -> None:
    """Return when the text is in the log."""
    until(lambda: text in log.read_text(), told=log.read_text)


@pytest.mark.spec("faults.sqlite-start-on-a-full-disk")
def test_a_start_that_has_to_write_is_refused_on_a_full_disk(
    small_disk: Path, tmp_path: Path
) -> None:
    file, advice = small_disk / "factbook.db", "Free some room"
    with filled(small_disk):
        sentence, hint = refused(tmp_path, file)
        assert FULL in sentence or "cannot be opened" in sentence
        assert hint.startswith(advice)
        file.unlink()
        keyless = {name: text for name, text in told(file).items() if "TOKEN_KEY" not in name}
        sentence, hint = refused(tmp_path, file, keyless)
        assert sentence == f"Error: The disk is full, so the key file {file}.key cannot be created."
        assert hint.startswith(advice)
        assert {path.name for path in small_disk.iterdir()} == {"filler"}


def test_a_start_that_has_to_migrate_is_refused_on_a_full_disk(
    small_disk: Path, tmp_path: Path
) -> None:
    file = small_disk / "factbook.db"
    asyncio.run(first_schema(file))
    with filled(small_disk):
        sentence, hint = refused(tmp_path, file)
    assert sentence == f"Error: {FULL}"
    assert "Free some room" in hint
    assert "before 0002_catalog_queries.sql is applied" in hint
    with serving(f"sqlite:///{file}", tmp_path):
        pass


async def first_schema(file: Path) -> None:
    name, text = next(iter(get_migration_texts().items()))
    database = await open_database(f"sqlite:///{file}")
    await migrate(database, NOON, known={name: text})
    await database.close()


def test_a_start_with_a_file_that_is_damaged_is_refused_with_advice(tmp_path: Path) -> None:
    file = tmp_path / "factbook.db"
    file.write_bytes(b"no database" * 1_000)
    sentence, advice = refused(tmp_path, file)
    assert sentence == f"Error: The database {file} cannot be opened: file is not a database."
    assert advice == (
        f"`factbook doctor` says what can still be read of {file}. Stop the service and restore a "
        "backup with `factbook restore`."
    )


@pytest.mark.parametrize("place", ["file", "folder", "new file"])
def test_a_start_with_a_file_that_may_only_be_read_is_refused_with_advice(
    tmp_path: Path, place: str
) -> None:
    folder = tmp_path / "data"
    file = folder / "factbook.db"
    folder.mkdir()
    if place != "new file":
        with serving(f"sqlite:///{file}", tmp_path):
            pass
    locked = file if place == "file" else folder
    locked.chmod(0o400 if place == "file" else 0o500)
    sentence, advice = refused(tmp_path, file)
    locked.chmod(0o700)
    assert sentence == f"Error: The database {file} cannot be opened: {locked} is read-only."
    assert advice == (
        f"The user of this process has to be able to write to {file} and to the folder that it "
        "is in."
    )
    assert {path.name for path in folder.iterdir()} <= {"factbook.db"}


def test_a_file_that_is_cut_off_while_it_is_open_is_told_and_refused_from_then_on(
    tmp_path: Path,
) -> None:
    file = tmp_path / "factbook.db"
    with serving(f"sqlite:///{file}", tmp_path) as server, server.client(server.token()) as http:
        assert http.put(SET, json=content(1)).status_code == 200
        empty_log(file)
        with file.open("r+b") as opened:
            opened.truncate(20 * 4096)
        # What is mapped into memory is gone: the system may end the process at any read.
        with suppress(httpx2.TransportError):
            assert http.get("/readyz").status_code == 503
        if not server.is_running:
            assert "Fatal Python error: Bus error" in server.log.read_text()
    sentence, advice = refused(tmp_path, file)
    assert (
        sentence
        == f"Error: The database {file} cannot be opened: database disk image is malformed."
    )
    assert "factbook restore" in advice


@pytest.mark.spec("faults.sqlite-disk-full-or-read-only")
def test_a_file_that_becomes_read_only_stops_writes_until_it_is_not(tmp_path: Path) -> None:
    file = tmp_path / "factbook.db"
    with serving(f"sqlite:///{file}", tmp_path) as server, server.client(server.token()) as http:
        assert http.put(SET, json=content(1)).status_code == 200
        parts = [file, file.with_name("factbook.db-wal")]
        subprocess.run(["chattr", "+i", *parts], check=True)
        try:
            answer = http.put(SET, json=content(2))
            assert answer.status_code == 503, answer.text
            assert "database" in answer.json()["error"]["message"]
            assert (version_of(http), asked(http)) == (1, 200)
            assert "writes" in http.get("/readyz").json()
        finally:
            subprocess.run(["chattr", "-i", *parts], check=True)
        assert http.put(SET, json=content(3)).status_code == 200
        assert version_of(http) == 3
    assert is_sound(file)
