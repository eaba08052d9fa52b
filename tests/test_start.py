"""The start of `factbook serve`: what it does not wait for, and flags that need no parser."""

from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from factbook.cli import main
from factbook.errors import ConfigurationError
from factbook.operations import server
from factbook.settings import Settings
from tests.processes import ServerProcess, serving

# The parser of the command line, what draws in colour, what only pages, scrapes, definitions and
# outgoing calls need, and what few configure.
NOT_AT_THE_START = {
    *("typer", "pydantic", "rich.console", "pygments"),
    *("jinja2", "yaml", "markdown_it", "argon2", "prometheus_client", "anyio"),
    *("httpx2", "httpcore2", "joserfc", "stamina", "re2"),
    *("opentelemetry", "dbos", "sqlalchemy", "factbook.web.routes"),
}


def imported(server: ServerProcess) -> set[str]:
    """All that the server has imported so far."""
    lines = server.log.read_text().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


@pytest.mark.slow
def test_a_start_imports_neither_pages_nor_what_few_need(database_url: str, tmp_path: Path) -> None:
    driver = {"psycopg"} if database_url.startswith("sqlite") else set[str]()
    with serving(database_url, tmp_path, PYTHONPROFILEIMPORTTIME="1") as server:
        at_the_start = imported(server)
        assert httpx2.get(f"{server.url}/sign-in", timeout=60).status_code == 200
        with_a_page = imported(server)
    assert "factbook.app" in at_the_start
    assert at_the_start & (NOT_AT_THE_START | driver) == set()
    assert with_a_page & NOT_AT_THE_START >= {"jinja2", "factbook.web.routes"}


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ([], {"port": 8090}),
        (["--host", "::1", "--port", "0", "--workers", "3"], {"host": "::1", "workers": 3}),
        (["--port", "80", "--port", "81", "--database-url", "sqlite:///a.db"], {"port": 81}),
        # These are for the parser.
        (["--port=80", "--host=::1"], {"host": "::1", "port": 80}),
    ],
)
def test_flags_override_the_environment(
    arguments: list[str],
    read: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    begun: list[Settings] = []
    monkeypatch.setattr(server, "serve", begun.append)
    monkeypatch.setattr("sys.argv", ["factbook", "serve", *arguments])
    monkeypatch.setenv("FACTBOOK_PORT", "8090")
    monkeypatch.chdir(tmp_path)
    with suppress(SystemExit):  # the parser ends the process
        main()
    [settings] = begun
    assert {name: getattr(settings, name) for name in read} == read


def test_flags_that_cannot_be_read_are_refused_by_the_parser(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    cases: list[list[str]] = [
        ["--port"],
        ["--port", "many"],
        ["--port", "70000"],
        ["--workers", "0"],
        ["8000"],
    ]
    for arguments in cases:
        with subtests.test(arguments=arguments):
            monkeypatch.setattr("sys.argv", ["factbook", "serve", *arguments])
            with pytest.raises(SystemExit) as ended:
                main()
            assert ended.value.code == 2
            assert "Error: " in capsys.readouterr().err


def test_a_port_that_no_machine_has_is_refused_wherever_it_stands() -> None:
    with pytest.raises(ConfigurationError, match="port has to be at most 65535, not 70000"):
        Settings(port=70_000)
