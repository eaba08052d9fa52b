"""What commands leave in the audit, and `factbook audit export`."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer

from factbook.cli.commands import app
from tests.cli.conftest import Command

# What each command that changes the database itself leaves; `collect` is in
# tests/api/test_audit_writes.py, as it needs a catalog, and imports are in test_importing*.py.
WRITES = {
    ("token", "create"): (["laptop"], "token.create"),
    ("token", "revoke"): (["laptop"], "token.revoke"),
    ("people", "invite"): (["lou", "--server", "http://a.test"], "person.invite"),
    ("people", "confirm"): (["kim"], "person.change"),
    ("people", "add"): (["mia", "--subject", "7"], "person.create"),
    ("people", "reset"): (["kim", "--server", "http://a.test"], "person.change"),
    ("people", "erase"): (["lou", "--yes"], "person.erase"),
    ("collect",): ([], "data-source.run"),
    ("import", "github"): ([], "import.write"),
    ("import", "gitlab"): ([], "import.write"),
    ("import", "gitea"): ([], "import.write"),
    ("import", "run"): ([], "import.write"),
    ("import", "catalog"): (["--address", "http://a.test"], "import.write"),
    ("import", "aws"): ([], "import.write"),
    ("import", "kubernetes"): (["--cluster", "eu-1"], "import.write"),
    ("import", "ldif"): (["people.ldif"], "import.write"),
    ("import", "apply"): (["github/acme.repositories"], "import.apply"),
    ("import", "discard"): (["github/acme.repositories"], "import.discard"),
    ("confirm-clock",): ([datetime.now(UTC).strftime("%Y-%m-%d")], "clock.confirm"),
}
# These need a catalog or an account.
_ELSEWHERE = {("collect",), *(("people", each) for each in ("reset", "confirm", "add"))}
# The schema has a record of its own: which release applied each migration, and when. What lays
# tables out changes no row, and the database's own catalogs tell the layout.
MIGRATES = {("migrate",), ("distribute",), ("partition",)}
# The whole database, from or to a file: what is in it stays as it is, the audit too.
COPIES = {("backup",), ("restore",)}
# They read, or they ask a server, which records what they do there.
OTHERS = {
    *(("serve",), ("worker",), ("doctor",), ("connect",), ("validate",)),
    *(("push",), ("sets",), ("entities",), ("facets",), ("facts",), ("call",), ("push-facts",)),
    ("events",),
    *(("webhooks", each) for each in ("list", "show", "create", "test", "enable", "delete")),
    *(("digests", each) for each in ("list", "create", "change", "test", "delete")),
    *(("sources", each) for each in ("list", "show", "new", "plan", "apply", "test")),
    *(
        ("checks", each)
        for each in (
            *("new", "test", "plan", "apply", "export"),
            *("comment", "gate", "import", "preview", "starter"),
        )
    ),
    *(("import", "list"), ("import", "show")),
    *(("token", "list"), ("people", "list"), ("audit", "export")),
}


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"--database-url=sqlite:///{tmp_path}/factbook.db"


def all_commands(command: Any, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """The words of each command that there is."""
    below = getattr(command, "commands", None)
    if below is None:
        return {path}
    return {each for name, one in below.items() for each in all_commands(one, (*path, name))}


def exported(factbook: Command, database: str, *arguments: str) -> list[dict[str, Any]]:
    answer = factbook("audit", "export", database, *arguments)
    assert answer.exit_code == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.splitlines()]


def test_whether_it_leaves_a_record_is_decided_for_every_command() -> None:
    known = all_commands(typer.main.get_command(app))
    assert known == {*WRITES, *MIGRATES, *COPIES, *OTHERS}


@pytest.mark.slow
@pytest.mark.spec("audit.every-write")
def test_commands_that_change_something_leave_one_record_each(
    factbook: Command, database: str
) -> None:
    done: list[str] = []
    for words, (arguments, action) in WRITES.items():
        if words in _ELSEWHERE or words[0] == "import":
            continue
        answer = factbook(*words, *arguments, database)
        assert answer.exit_code == 0, answer.stderr
        done.append(action)
        found = exported(factbook, database)
        assert [record["action"] for record in found] == done
        assert {(record["actor"], record["outcome"]) for record in found} == {
            ("command line", "done")
        }


def test_an_export_goes_on_behind_a_line_and_within_times(factbook: Command, database: str) -> None:
    for name in ("a", "b", "c"):
        factbook("token", "create", name, database)
    first, second, third = exported(factbook, database)
    assert exported(factbook, database, "--after", first["cursor"]) == [second, third]
    assert exported(factbook, database, "--since", third["at"], "--until", third["at"]) == [third]


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["--since", "yesterday"], "--since is a time such as"),
        (["--until", "2026-11-01"], "--until is a time such as"),
        (["--after", "1"], '--after takes the "cursor" of a line'),
        (["--follow", "--until", "2026-11-01T00:00:00Z"], "--follow does not end"),
    ],
)
def test_a_question_that_cannot_be_meant_is_refused(
    factbook: Command, database: str, arguments: list[str], wrong: str
) -> None:
    factbook("migrate", database)
    answer = factbook("audit", "export", database, *arguments)
    assert answer.exit_code == 2
    assert wrong in answer.stderr
