"""`factbook partition` and `factbook distribute`: what they print, and their exit codes."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.postgresql import PostgreSQLServer


@pytest.fixture
def option(postgresql_server: PostgreSQLServer, migrated_name: str) -> Iterator[str]:
    """The option that names a PostgreSQL database."""
    with postgresql_server.database(f"test_{secrets.token_hex(8)}", like=migrated_name) as url:
        yield f"--database-url={url}"


def test_steps_are_planned_then_done_then_none_are_left(factbook: Command, option: str) -> None:
    planned = factbook("partition", "--plan", option)
    assert planned.exit_code == 0
    assert [line.partition(":")[0] for line in planned.stdout.splitlines()] == [
        *["facts_history"] * 3,
        *["audit"] * 3,
    ]
    assert factbook("partition", "--plan", option).stdout == planned.stdout
    done = factbook("partition", option)
    assert (done.exit_code, done.stdout) == (0, "")
    assert set(planned.stdout.splitlines()) <= set(done.stderr.splitlines())
    again = factbook("partition", option)
    assert (again.exit_code, again.stderr) == (
        0,
        "History and the audit are partitioned by month.\n",
    )


@pytest.mark.parametrize("command", ["partition", "distribute"])
@pytest.mark.parametrize("plan", [(), ("--plan",)])
def test_sqlite_is_refused_and_no_file_is_made(
    factbook: Command, tmp_path: Path, command: str, plan: tuple[str, ...]
) -> None:
    answer = factbook(command, *plan, f"--database-url=sqlite:///{tmp_path}/factbook.db")
    assert answer.exit_code == 2
    assert "SQLite is one file on one machine" in answer.stderr
    assert not (tmp_path / "factbook.db").exists()


def test_a_postgresql_without_citus_is_refused(factbook: Command, option: str) -> None:
    answer = factbook("distribute", option)
    assert (answer.exit_code, "has no Citus" in answer.stderr) == (2, True)
