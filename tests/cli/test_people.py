"""`factbook people`, on a database of its own."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

SERVER = "--server=https://facts.example.com/"


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"--database-url=sqlite:///{tmp_path}/factbook.db"


def test_the_link_stands_alone_on_stdout(factbook: Command, database: str) -> None:
    answer = factbook("people", "invite", database, SERVER)
    assert answer.exit_code == 0
    (link,) = answer.stdout.splitlines()
    assert link.startswith("https://facts.example.com/welcome/")
    assert link not in answer.stderr


@pytest.mark.parametrize(
    ("options", "role"),
    [([], "administrator"), (["--role", "viewer"], "viewer")],
    ids=["nothing said", "said"],
)
def test_while_nobody_is_there_an_invitation_is_for_an_administrator(
    factbook: Command, database: str, options: list[str], role: str
) -> None:
    answer = factbook("people", "invite", database, *options)
    assert f"becomes {role}" in answer.stderr
    assert answer.stdout.startswith("http://127.0.0.1:8000/welcome/")


def test_a_role_that_there_is_not_is_wrong_usage(factbook: Command, database: str) -> None:
    answer = factbook("people", "invite", database, "--role", "owner")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert 'There is no role "owner"' in answer.stderr


def test_where_the_system_chooses_the_port_the_address_has_to_be_given(
    factbook: Command, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTBOOK_PORT", "0")
    answer = factbook("people", "invite", database)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "--server" in answer.stderr
    assert factbook("people", "invite", database, SERVER).exit_code == 0


def test_nobody_is_listed_in_an_empty_database(factbook: Command, database: str) -> None:
    assert factbook("people", "list", database, "--json").stdout == "[]\n"
    assert "Last sign-in" in factbook("people", "list", database).stdout


def test_the_password_of_nobody_cannot_be_set(factbook: Command, database: str) -> None:
    answer = factbook("people", "reset", "kim", database)
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert "There is no person user:default/kim" in answer.stderr
    assert factbook("people", "reset", "not a name", database).exit_code == 2


@pytest.mark.parametrize("command", ["invite", "reset", "list"])
def test_the_help_of_each_command_has_an_example(factbook: Command, command: str) -> None:
    answer = factbook("people", command, "--help")
    assert f"factbook people {command}" in answer.stdout
    assert json.dumps(answer.stdout)
