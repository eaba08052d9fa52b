"""`factbook token`, on a database of its own."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from factbook.auth.permissions import PERMISSION_NAMES
from tests.cli.conftest import Command


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"--database-url=sqlite:///{tmp_path}/factbook.db"


def test_the_value_stands_alone_on_stdout(factbook: Command, database: str) -> None:
    answer = factbook("token", "create", "laptop", database)
    assert answer.exit_code == 0
    (value,) = answer.stdout.splitlines()
    assert value.startswith("fbk_")
    assert value not in answer.stderr
    assert "laptop" in answer.stderr


@pytest.mark.spec("token.value-shown-once", "token.has-a-name", "token.has-an-owner")
def test_tokens_are_listed_without_their_values(factbook: Command, database: str) -> None:
    value = factbook(
        "token", "create", "agent", database, "--user", "user:default/kim"
    ).stdout.strip()
    table = factbook("token", "list", database).stdout
    assert "agent" in table
    assert "user:default/kim" in table
    assert value not in table
    (token,) = json.loads(factbook("token", "list", database, "--json").stdout)
    assert (token["name"], token["owner"]) == ("agent", "user:default/kim")
    assert token["createdAt"] < token["expiresAt"]


def test_a_listing_shows_how_long_ago_and_how_long_yet(factbook: Command, database: str) -> None:
    factbook("token", "create", "laptop", database)
    row = factbook("token", "list", database).stdout.splitlines()[1]
    assert "in 90 days" in row
    assert "+00:00" not in row


@pytest.mark.slow
@pytest.mark.spec("token.has-permissions", "token.least-privilege")
def test_a_token_reads_unless_more_is_asked_for(
    factbook: Command, database: str, subtests: pytest.Subtests
) -> None:
    reads = {"catalog.entity.read", "tech-insights.data-source.read"}
    pushes = {"catalog.entity-set.write"}
    cases: list[tuple[list[str], Iterable[str]]] = [
        ([], reads),
        (["--set", "shop-*"], reads),
        (["--permission", "audit.read"], {"audit.read"}),
        (["--preset", "ask"], reads),
        (["--preset", "push"], pushes),
        (["--preset", "push", "--preset", "ask"], pushes | reads),
        (["--preset", "pipeline"], pushes | reads | {"tech-insights.fact.write"}),
        (["--preset", "push", "--permission", "audit.read"], pushes | {"audit.read"}),
        (["--preset", "scim"], {"scim.write"}),
        (["--all"], PERMISSION_NAMES),
    ]
    for number, (options, wanted) in enumerate(cases):
        with subtests.test(options=options):
            answer = factbook("token", "create", str(number), database, *options)
            assert answer.exit_code == 0, answer.stderr
            (permissions,) = re.findall("Permissions: (.*)", answer.stderr)
            assert permissions == ("all" if options == ["--all"] else ", ".join(sorted(wanted)))
            listed = json.loads(factbook("token", "list", database, "--json").stdout)
            (token,) = (token for token in listed if token["name"] == str(number))
            assert token["permissions"] == sorted(wanted)


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_token_is_revoked_by_name_or_id(factbook: Command, database: str, by: str) -> None:
    factbook("token", "create", "laptop", database)
    (token,) = json.loads(factbook("token", "list", database, "--json").stdout)
    assert factbook("token", "revoke", token[by], database).stdout == "Revoked: laptop\n"
    assert factbook("token", "list", database, "--json").stdout == "[]\n"


def test_a_token_can_live_for_ever(factbook: Command, database: str) -> None:
    factbook("token", "create", "laptop", database, "--expires", "never")
    (token,) = json.loads(factbook("token", "list", database, "--json").stdout)
    assert token["expiresAt"] is None


def test_what_no_token_can_have_is_wrong_usage(
    factbook: Command, database: str, subtests: pytest.Subtests
) -> None:
    cases: list[list[str]] = [
        ["--expires", "soon"],
        ["--permission", "do.anything"],
        ["--user", "not a reference:"],
        ["--preset", "everything"],
        ["--all", "--preset", "ask"],
        ["--all", "--permission", "audit.read"],
    ]
    for option in cases:
        with subtests.test(option[0]):
            answer = factbook("token", "create", "laptop", database, *option)
            assert (answer.exit_code, answer.stdout) == (2, "")
            assert answer.stderr.startswith("Error: ")


def test_revoking_what_is_not_there_is_exit_code_1(factbook: Command, database: str) -> None:
    answer = factbook("token", "revoke", "nobody", database)
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("Error: ")


def test_a_new_database_has_no_tokens(factbook: Command, database: str) -> None:
    factbook("migrate", database)
    answer = factbook("token", "list", database, "--json")
    assert (answer.exit_code, answer.stdout) == (0, "[]\n")


def test_migrating_prints_what_was_applied_and_then_nothing(
    factbook: Command, database: str
) -> None:
    assert factbook("migrate", database).stdout.splitlines()
    again = factbook("migrate", database)
    assert (again.exit_code, again.stdout) == (0, "")
    assert again.stderr == "The database is up to date.\n"


@pytest.mark.spec("token.narrowed-is-kept-within")
def test_a_token_is_narrowed_by_options_and_listed_with_what_it_is_narrowed_to(
    factbook: Command, database: str
) -> None:
    options = ("--set", "shop-*", "--set", "web", "--namespace", "eu", "--source", "coverage")
    assert factbook("token", "create", "ci", database, *options).exit_code == 0
    assert factbook("token", "create", "agent", database, "--tool", "get-entity").exit_code == 0
    listed = json.loads(factbook("token", "list", database, "--json").stdout)
    assert {token["name"]: token["narrowing"] for token in listed} == {
        "ci": {"sets": ["shop-*", "web"], "namespaces": ["eu"], "sources": ["coverage"]},
        "agent": {"tools": ["get-entity"]},
    }
    assert "sets: shop-*, web; namespaces: eu" in factbook("token", "list", database).stdout
    assert factbook("token", "create", "x", database, "--namespace", "EU").exit_code != 0
