"""What all commands share: help, exit codes, errors without a traceback."""

import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner

from factbook import __version__
from factbook.cli.commands import COMMANDS, app
from tests.cli.conftest import Command
from tests.cli.fake_server import TOOLS, FakeServer

SETS = "/api/catalog/factbook-entities/sets"
NAMES = [
    *([command.__name__.replace("_", "-")] for command in COMMANDS),
    *(["sources", name] for name in ("list", "new", "plan", "apply", "test")),
    *(
        ["checks", name]
        for name in ("new", "test", "plan", "apply", "export", "gate", "import", "preview")
    ),
    *(["import", name] for name in ("github", "list", "show", "apply", "discard")),
    *(["token", name] for name in ("create", "list", "revoke")),
]


def test_help_teaches_by_examples_and_tells_the_exit_codes(
    factbook: Command, subtests: pytest.Subtests
) -> None:
    assert NAMES
    for name in NAMES:
        with subtests.test(" ".join(name)):
            answer = factbook(*name, "--help")
            assert answer.exit_code == 0
            assert "Usage: " in answer.stdout
            assert f"\n    factbook {' '.join(name)}" in answer.stdout
            assert "4  the server cannot be reached" in answer.stdout


def test_help_without_a_command_lists_all_of_them(factbook: Command) -> None:
    answer = factbook("-h")
    assert answer.exit_code == 0
    assert all(f"\n  {name[0]} " in answer.stdout for name in NAMES)


def test_help_tells_apart_what_needs_the_database_and_what_a_server(factbook: Command) -> None:
    def sections(*group: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for line in factbook(*group, "--help").stdout.splitlines():
            if line == "  Exit codes:":
                break
            if line.startswith("Commands"):
                title, found[line] = line, set()
            elif line.startswith("  ") and line[2] != " " and found:
                found[title].add(line.split()[0])
        return found

    on_database = "Commands on the database itself (--database-url):"
    of_server = "Commands that ask a server (--server, --token):"
    shown = sections()
    assert shown[on_database] == {
        *("serve", "worker", "migrate", "backup", "restore", "doctor", "confirm-clock", "collect"),
        *("token", "people", "audit", "import", "distribute", "partition"),
    }
    assert {"push", "validate", "entities", "facts", "webhooks"} <= shown[of_server]
    assert shown["Commands of both kinds:"] >= {"sources"}
    assert sections("sources") == {
        on_database: {"list", "show"},
        of_server: {"plan", "apply", "test"},
        "Commands that need neither database nor server:": {"new"},
    }


@pytest.mark.slow
def test_help_imports_neither_http_nor_the_service() -> None:
    heavy = {"httpx2", "rich.console", "yaml", "starlette", "sqlite3", "factbook.app"}
    code = f"""
import sys
from factbook.cli import main
sys.argv = ["factbook", "--help"]
try:
    main()
finally:
    assert not (found := {heavy} & set(sys.modules)), found
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: factbook" in done.stdout


def test_the_version_is_printed(factbook: Command) -> None:
    assert factbook("--version").stdout == f"factbook {__version__}\n"


@pytest.mark.parametrize("arguments", [["nope"], ["push"], ["push", "s"], ["sets", "--nope"]])
def test_wrong_usage_is_exit_code_2(factbook: Command, arguments: list[str]) -> None:
    answer = factbook(*arguments)
    assert answer.exit_code == 2
    assert "Error: " in answer.stderr


@pytest.mark.parametrize("address", ["localhost:8000", "factbook.test", ""])
def test_an_address_without_scheme_is_wrong_usage(factbook: Command, address: str) -> None:
    answer = factbook("sets", "--server", address)
    assert answer.exit_code == 2
    assert "begins with http:// or https://" in answer.stderr


@pytest.mark.parametrize("status", [401, 403])
def test_a_missing_right_is_exit_code_3_with_the_next_step(
    factbook: Command, server: FakeServer, status: int
) -> None:
    server.refuse("GET", SETS, status, "It needs catalog.entity.read.")
    answer = factbook("sets")
    assert (answer.exit_code, answer.stdout) == (3, "")
    first, second = answer.stderr.splitlines()
    assert first == "Error: It needs catalog.entity.read."
    assert "factbook token create" in second


def test_a_token_that_the_tool_endpoint_refuses_is_exit_code_3(
    factbook: Command, server: FakeServer
) -> None:
    body = {"error": "invalid_token", "error_description": "The token has expired."}
    server.on("POST", TOOLS, body, 401)
    answer = factbook("call", "get-things")
    assert answer.exit_code == 3
    assert answer.stderr.startswith("Error: The token has expired.\n")


def test_any_other_refusal_is_exit_code_1(
    factbook: Command, server: FakeServer, subtests: pytest.Subtests
) -> None:
    for status in [404, 413, 429, 500, 502]:
        with subtests.test(status=status):
            server.refuse("GET", SETS, status, "The reason.")
            answer = factbook("sets")
            assert (answer.exit_code, answer.stderr) == (1, "Error: The reason.\n")


def test_an_answer_of_something_else_is_exit_code_1(factbook: Command, server: FakeServer) -> None:
    server.on("GET", SETS, {"hello": "world"})
    answer = factbook("sets")
    assert answer.exit_code == 1
    assert "not Factbook's" in answer.stderr


def test_a_server_that_is_not_there_is_exit_code_4() -> None:
    def refuse(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("Connection refused")

    transport = httpx2.MockTransport(refuse)
    answer = CliRunner().invoke(app, ["sets", "--server", "http://x.test"], obj=transport)
    assert answer.exit_code == 4
    assert answer.stderr.splitlines() == [
        "Error: http://x.test is not reachable: Connection refused",
        "Start one with `factbook serve`, or name another with --server or FACTBOOK_SERVER.",
    ]


def test_the_token_never_appears_in_a_message(factbook: Command, server: FakeServer) -> None:
    for token in ("fbk_secret", "fbk_secret\x01", "fbk_secreté"):
        answer = factbook("sets", "--token", token)
        assert answer.exit_code != 0
        assert "secret" not in answer.output


@pytest.mark.parametrize("command", ["migrate", "serve"])
def test_a_bad_setting_is_exit_code_2(factbook: Command, command: str) -> None:
    Path("factbook.toml").write_text("colour = 'red'\n")
    answer = factbook(command)
    assert answer.exit_code == 2
    assert answer.stderr == "Error: factbook.toml has unknown settings: colour.\n"


@pytest.mark.parametrize(
    "command",
    [
        "audit export",
        "collect github",
        "confirm-clock 2026-12-01",
        "import list",
        "import show github",
        "people erase kim",
        "people list",
        "sources",
        "sources show github",
        "token list",
        "token revoke ci",
    ],
)
def test_a_command_that_reads_the_database_makes_none(
    factbook: Command, tmp_path: Path, command: str
) -> None:
    answer = factbook(*command.split())
    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert f"There is no database {tmp_path / 'factbook.db'}." in answer.stderr
    assert "--database-url" in answer.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["people invite kim", "token create ci"])
def test_a_command_that_prepares_a_service_makes_its_database(
    factbook: Command, tmp_path: Path, command: str
) -> None:
    assert factbook(*command.split()).exit_code == 0
    assert (tmp_path / "factbook.db").exists()
