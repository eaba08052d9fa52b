"""`factbook backup`, `restore` and `doctor`: what they print, and their exit codes."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Command


@pytest.fixture
def database(factbook: Command, tmp_path: Path) -> str:
    """The option that names a database that was migrated, with a key file."""
    option = f"--database-url=sqlite:///{tmp_path}/factbook.db"
    assert factbook("token", "create", "first", option).exit_code == 0
    return option


def test_a_backup_is_named_on_standard_output_and_can_be_restored(
    factbook: Command, database: str, tmp_path: Path
) -> None:
    made = factbook("backup", str(tmp_path / "one.db"), database)
    assert (made.exit_code, made.stdout) == (0, f"{tmp_path}/one.db\n")
    assert "protect it like the service" in made.stderr
    refused = factbook("restore", str(tmp_path / "one.db"), database)
    assert (refused.exit_code, "--force moves it aside" in refused.stderr) == (1, True)
    done = factbook("restore", str(tmp_path / "one.db"), "--force", database)
    assert (done.exit_code, done.stdout) == (0, f"Restored: {tmp_path}/one.db\n")
    assert "What was there before is" in done.stderr
    assert "first" in factbook("token", "list", database).stdout


def test_wrong_usage_says_what_is_right(
    factbook: Command, database: str, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[tuple[str, ...], int, str]] = [
        (("backup", "nowhere/one.db"), 2, "There is no folder nowhere"),
        (("backup", "one.db", "--keep", "3"), 2, "--keep needs a folder"),
        (("restore",), 2, "Give a FILE, or --already-restored"),
        (("restore", "one.db", "--already-restored"), 2, "and not both"),
        (("restore", "one.db"), 2, "There is no backup one.db"),
    ]
    for arguments, code, message in cases:
        with subtests.test(arguments=arguments):
            answer = factbook(*arguments, database)
            assert (answer.exit_code, message in answer.stderr) == (code, True), answer.stderr


def test_on_postgresql_a_backup_is_advice(
    factbook: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTBOOK_TOKEN_KEY", "k" * 32)
    answer = factbook("backup", "one.db", "--database-url=postgresql://127.0.0.1:1/x")
    assert (answer.exit_code, "pg_dump" in answer.stderr) == (2, True)


def test_a_database_that_other_tools_put_back_is_settled(factbook: Command, database: str) -> None:
    answer = factbook("restore", "--already-restored", database)
    assert answer.exit_code == 0
    assert re.fullmatch(
        r"Restore finished\. The event feed starts over: readers get 410 once, then continue at "
        r"the cursor \d+\.0\.\n",
        answer.stdout,
    )


def test_the_doctor_ends_with_0_where_there_are_warnings_alone(
    factbook: Command, database: str
) -> None:
    answer = factbook("doctor", database)
    assert answer.exit_code == 0
    assert answer.stdout.splitlines()[-1].startswith("0 problems, ")
    assert "warning  worker: No process ever kept house here." in answer.stdout


def test_the_doctor_ends_with_1_where_there_is_a_problem(
    factbook: Command, database: str, tmp_path: Path
) -> None:
    (tmp_path / "factbook.db.key").chmod(0o644)
    answer = factbook("doctor", "--quick", "--json", database)
    assert answer.exit_code == 1
    told = json.loads(answer.stdout)
    assert told["ok"] is False
    [one] = [check for check in told["checks"] if check["state"] == "problem"]
    assert (one["topic"], "chmod 600" in one["what"]) == ("key", True)
