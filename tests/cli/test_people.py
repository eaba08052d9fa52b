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
    [([], "administrator"), (["kim", "--role", "viewer"], "viewer"), (["kim"], "viewer")],
    ids=["nothing said", "said", "named"],
)
def test_while_nobody_is_there_an_invitation_is_for_an_administrator(
    factbook: Command, database: str, options: list[str], role: str
) -> None:
    answer = factbook("people", "invite", database, *options)
    assert f"becomes {role}" in answer.stderr
    assert answer.stdout.startswith("http://127.0.0.1:8000/welcome/")


def test_an_invitation_that_is_not_for_the_first_administrator_names_the_person(
    factbook: Command, database: str
) -> None:
    answer = factbook("people", "invite", database, "--role", "viewer")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "factbook people invite NAME" in answer.stderr


def test_only_an_account_that_there_is_can_be_confirmed(factbook: Command, database: str) -> None:
    factbook("migrate", database)
    answer = factbook("people", "confirm", "kim", database)
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert "There is no person user:default/kim" in answer.stderr


def test_an_account_is_added_for_a_subject_at_the_provider(
    factbook: Command, database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = ("people", "add", "Kim", "--subject", "00u1", database)
    answer = factbook(*command)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "[openid]" in answer.stderr
    settings = tmp_path / "factbook.toml"
    settings.write_text('[openid]\nissuer = "https://id.example.com"\nclient_id = "factbook"\n')
    monkeypatch.setenv("FACTBOOK_CONFIG", str(settings))
    assert "user:default/kim can sign in now, as viewer" in factbook(*command).stderr
    [kim] = json.loads(factbook("people", "list", database, "--json").stdout)
    assert (kim["ref"], kim["issuer"]) == ("user:default/kim", "https://id.example.com")
    confirmed = factbook("people", "confirm", "kim", database)
    assert "The account kim is the catalog's user user:default/kim" in confirmed.stderr


def test_a_role_that_there_is_not_is_wrong_usage(factbook: Command, database: str) -> None:
    answer = factbook("people", "invite", "kim", database, "--role", "owner")
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
    factbook("migrate", database)
    assert factbook("people", "list", database, "--json").stdout == "[]\n"
    assert "Last sign-in" in factbook("people", "list", database).stdout


def test_the_password_of_nobody_cannot_be_set(factbook: Command, database: str) -> None:
    factbook("migrate", database)
    answer = factbook("people", "reset", "kim", database)
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert "There is no person user:default/kim" in answer.stderr
    assert factbook("people", "reset", "not a name", database).exit_code == 2


@pytest.mark.parametrize("command", ["invite", "confirm", "add", "reset", "erase", "list"])
def test_the_help_of_each_command_has_an_example(factbook: Command, command: str) -> None:
    answer = factbook("people", command, "--help")
    assert f"factbook people {command}" in answer.stdout
    assert json.dumps(answer.stdout)
