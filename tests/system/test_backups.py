"""Backups and restores that are killed or run out of room, as processes of their own."""

import os
import random
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.processes import FACTBOOK, TOKEN_KEY, clean_environment, serving
from tests.service import PUSH, component
from tests.waiting import until

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]

KILLS = 40 if os.environ.get("FACTBOOK_SOAK") else 8
_MIB = 2**20


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A database of about 60 MiB that a service has filled, and that nobody has open."""
    file = tmp_path / "factbook.db"
    with serving(f"sqlite:///{file}", tmp_path) as server, server.client(server.token()) as http:
        text = "x" * 4_000
        for number in range(5):
            items = [component(f"s{number}-{i}", text=text) for i in range(2_000)]
            answer = http.put(f"{PUSH}/sets/set-{number}", json={"items": items})
            assert answer.status_code == 200
    return file


def command(database: Path, *arguments: str) -> "subprocess.Popen[str]":
    """A `factbook` command on the database."""
    environment = clean_environment() | {
        "FACTBOOK_DATABASE_URL": f"sqlite:///{database}",
        "FACTBOOK_TOKEN_KEY": TOKEN_KEY,
    }
    return subprocess.Popen(
        [FACTBOOK, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def killed(process: "subprocess.Popen[str]", unfinished: Path, seconds: float) -> bool:
    """Kill it so long after it began to write; whether that was before its end."""
    until(lambda: unfinished.exists() or process.poll() is not None, pause=0.001)
    time.sleep(seconds)  # what is tested is another moment each time
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def done(process: "subprocess.Popen[str]") -> None:
    """Wait for its end, which has to be a good one."""
    said, _ = process.communicate()
    assert process.returncode == 0, said


def entities(file: Path) -> int:
    """How many entities a sound database holds."""
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        [count] = database.execute("SELECT COUNT(*) FROM entities").fetchone()
    return int(count)


def test_a_backup_that_is_killed_leaves_none_or_a_whole_one(filled: Path, tmp_path: Path) -> None:
    out, chance, kills = tmp_path / "out", random.Random(3), 0
    out.mkdir()
    for _ in range(KILLS):
        process = command(filled, "backup", str(out))
        kills += killed(process, out / ".factbook-backup.unfinished", chance.uniform(0, 0.3))
        assert all(entities(made) == 10_000 for made in out.glob("factbook-*.db"))
        for made in out.glob("factbook-*.db"):
            made.unlink()
    assert kills >= KILLS // 2
    done(command(filled, "backup", str(out)))
    [made] = out.iterdir()
    assert entities(made) == 10_000


@pytest.mark.spec("backups.survive-a-kill")
def test_a_restore_that_is_killed_leaves_the_old_database_or_the_new_one(
    filled: Path, tmp_path: Path
) -> None:
    out, chance, kills = tmp_path / "backup.db", random.Random(4), 0
    done(command(filled, "backup", str(out)))
    with closing(sqlite3.connect(filled)) as database, database:
        database.execute("DELETE FROM set_items")
        database.execute("DELETE FROM entities WHERE name LIKE 's0-%'")
    for _ in range(KILLS):
        process = command(filled, "restore", str(out), "--force")
        kills += killed(process, tmp_path / ".factbook.db.restoring", chance.uniform(0, 0.8))
        assert entities(filled) in {8_000, 10_000}
        for aside in tmp_path.glob("factbook.db.before-*"):
            aside.unlink()
    assert kills >= KILLS // 2
    done(command(filled, "restore", str(out), "--force"))
    assert entities(filled) == 10_000
    assert list(tmp_path.glob(".factbook*")) == []
    with serving(f"sqlite:///{filled}", tmp_path) as server, server.client(server.token()) as http:
        answer = http.get(f"{PUSH}/sets/set-0").json()
        assert len(answer["items"]) == 2_000


def test_a_backup_or_restore_without_room_says_so_and_leaves_everything_as_it_was(
    filled: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    made = tmp_path / "backup.db"
    done(command(filled, "backup", str(made)))
    before = sorted(one.name for one in tmp_path.iterdir())
    for arguments in (("backup", str(out)), ("restore", str(made), "--force")):
        ended = subprocess.run(
            ["prlimit", f"--fsize={10 * _MIB}", FACTBOOK, *arguments],
            env=clean_environment()
            | {
                "FACTBOOK_DATABASE_URL": f"sqlite:///{filled}",
                "FACTBOOK_TOKEN_KEY": TOKEN_KEY,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 1, ended.stderr
        assert "could not be copied" in ended.stderr
        assert "Traceback" not in ended.stderr
    assert list(out.iterdir()) == []
    assert sorted(one.name for one in tmp_path.iterdir()) == before
    assert entities(filled) == 10_000
