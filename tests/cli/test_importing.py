"""`factbook import`: planning, writing, and deciding on what is held."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from typer.testing import Result

from factbook.catalog.store.stored_entities import DOCUMENT
from tests.cli.conftest import Command
from tests.cli.test_auditing import exported
from tests.fakes import faults
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Token
from tests.fakes.serving import served
from tests.importers.organization import CATALOG, file, member, repository, team
from tests.integrations.github.asking import TOKEN

TABLE = "FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT"

Import = Callable[..., Result]


@pytest.fixture
def fake() -> FakeGitHub:
    fake = FakeGitHub([repository(f"r{n:02}", n + 1) for n in range(12)], [Token(TOKEN)])
    fake.repositories += [
        repository("shop", 20, texts={CATALOG: file("shop")}),
        repository("broken", 21, texts={CATALOG: "a: ["}),
        repository("old", 22, is_archived=True),
    ]
    fake.teams, fake.members = [team("web", 1, "alice")], [member("alice", 2)]
    return fake


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"--database-url=sqlite:///{tmp_path}/factbook.db"


@pytest.fixture
def run(
    fake: FakeGitHub, database: str, factbook: Command, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Import]:
    """Runs `factbook import` with an instance of GitHub in the settings."""
    monkeypatch.setenv("FACTBOOK_OUTGOING_NETWORKS", "127.0.0.0/8")
    with served(fake) as url:
        monkeypatch.setenv(f"{TABLE}__API_URL", url)
        monkeypatch.setenv(f"{TABLE}__TOKEN", TOKEN)
        yield lambda *arguments: factbook("import", *arguments, database)


def read(run: Import, *arguments: str) -> Any:
    answer = run(*arguments, "--json")
    assert answer.exit_code == 0, answer.stderr
    return json.loads(answer.stdout)


def test_a_plan_tells_what_would_come_and_writes_nothing(run: Import) -> None:
    answer = run("github", "--org", "acme", "--plan")
    assert answer.exit_code == 0, answer.stderr
    assert "github/acme.repositories" in answer.stdout
    assert "Left out: 1 archived repositories" in answer.stdout
    assert "3 calls; 4,997 of the limit are left (plan: nothing was written)" in answer.stdout
    assert "github.com/acme/broken catalog-info.yaml:2: is not valid YAML" in answer.stderr
    assert read(run, "list") == []


def test_an_import_writes_and_says_how_it_went(run: Import) -> None:
    report = read(run, "github", "--org", "acme")
    assert [(part["part"], part["changes"]["added"]) for part in report["parts"]] == [
        ("github/acme.repositories", 14),
        ("github/acme.teams", 1),
        ("github/acme.members", 1),
    ]
    [members, repositories, teams] = read(run, "list")
    assert (members["state"], teams["state"]) == ("complete", "complete")
    assert repositories["entities"] == 14
    again = read(run, "github", "--org", "acme")
    assert [part["changes"]["unchanged"] for part in again["parts"]] == [14, 1, 1]
    assert [part["difference"] for part in again["parts"]] == [[], [], []]


@pytest.mark.slow
def test_an_import_leaves_a_record_of_each_part_that_changed(
    run: Import, factbook: Command, database: str, fake: FakeGitHub
) -> None:
    run("github", "--org", "acme")
    run("github", "--org", "acme")
    fake.repositories = fake.repositories[-3:]
    run("github", "--org", "acme")
    run("discard", "github/acme.repositories")
    fake.repositories = [repository("new", 99)]
    run("github", "--org", "acme")
    run("apply", "github/acme.repositories")
    records = [(one["action"], one["object"]) for one in exported(factbook, database)]
    part = "import/github/acme.repositories"
    assert records == [
        ("import.write", part),
        ("import.write", "import/github/acme.teams"),
        ("import.write", "import/github/acme.members"),
        ("import.discard", part),
        ("import.write", part),
    ]


@pytest.mark.slow
def test_many_removals_are_held_shown_and_applied(run: Import, fake: FakeGitHub) -> None:
    run("github", "--org", "acme")
    fake.repositories = fake.repositories[12:]
    answer = run("github", "--org", "acme")
    assert answer.exit_code == 1
    assert "github/acme.repositories: 12 removals are held" in answer.stderr
    assert "factbook import apply github/acme.repositories" in answer.stderr
    shown = run("show", "github/acme.repositories")
    assert "component:default/r00" in shown.stdout
    applied = run("apply", "github/acme.repositories")
    assert (applied.exit_code, "component:default/r00" in applied.stdout) == (0, True)
    assert read(run, "list")[1]["entities"] == 2
    refused = run("apply", "github/acme.repositories")
    assert refused.exit_code == 1
    assert "No removal of import/github/acme.repositories waits" in refused.stderr


def test_an_importer_is_shown_with_its_runs_and_problems(
    run: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("github", "--org", "acme")
    unknown = run("show", "gitlab")
    assert (unknown.exit_code, 'There is no importer "gitlab"' in unknown.stderr) == (1, True)
    shown = run("show", "github").stdout
    assert "github: not run by the service" in shown
    assert "github/acme.teams" in shown
    monkeypatch.setenv("FACTBOOK_IMPORTERS__GITHUB__DEFAULT__ORGANIZATIONS", "acme")
    shown = run("show", "github").stdout
    assert "github: complete, last complete run" in shown
    assert "github.com/acme/broken catalog-info.yaml:2: is not valid YAML" in shown
    found = read(run, "show", "github")
    assert (found["intervalSeconds"], found["createdBy"]) == (3600, None)
    [made] = found["runs"]
    assert (made["reason"], made["state"], made["calls"]) == ("command", "complete", 3)
    assert len(found["parts"]) == 3


@pytest.mark.slow
def test_what_cannot_be_read_whole_ends_with_1_and_removes_nothing(
    run: Import, fake: FakeGitHub
) -> None:
    run("github", "--org", "acme")
    fake.fail("graphql", faults.unavailable, times=30)
    answer = run("github", "--org", "acme")
    assert answer.exit_code == 1
    assert "Not everything could be read" in answer.stderr
    fake.recover()
    assert read(run, "list")[1]["entities"] == 14


def test_the_importers_of_the_settings_run_by_their_ids(
    run: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = run("run")
    assert (nothing.exit_code, "[importers.KIND.NAME]" in nothing.stderr) == (1, True)
    for name in ("DEFAULT", "OTHER"):
        monkeypatch.setenv(f"FACTBOOK_IMPORTERS__GITHUB__{name}__ORGANIZATIONS", "acme")
    monkeypatch.setenv("FACTBOOK_IMPORTERS__GITHUB__OTHER__PEOPLE", "false")
    planned = read(run, "run", "--plan")
    assert [one["importer"] for one in planned] == ["github", "github-other"]
    assert read(run, "list") == []
    [report] = read(run, "run", "github")
    assert report["parts"][0]["changes"]["added"] == 14
    assert [one["part"] for one in read(run, "list")] == [
        "github/acme.members",
        "github/acme.repositories",
        "github/acme.teams",
    ]
    unknown = run("run", "nothing")
    assert "There are: github, github-other." in unknown.stderr


def test_a_mistake_in_the_table_of_an_importer_ends_the_command(
    run: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTBOOK_IMPORTERS__GITHUB__DEFAULT__EVERY", "soon")
    answer = run("run")
    assert (answer.exit_code, "importers.github.default: every has" in answer.stderr) == (2, True)


def test_an_import_needs_a_credential_and_an_organization(
    run: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = run("github")
    assert (nobody.exit_code, "--org acme" in nobody.stderr) == (2, True)
    without = run("github", "--org", "acme", "--instance", "other")
    assert (without.exit_code, "GITHUB_TOKEN" in without.stderr) == (2, True)
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_secret")
    named = run("github", "--org", "acme", "--instance", "other", "--host", "no host")
    assert (named.exit_code, "host has to be" in named.stderr) == (2, True)


def test_the_token_is_never_shown(run: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{TABLE}__TOKEN", "ghp_wrong_secret")
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_wrong_secret")
    answer = run("github", "--org", "acme")
    assert answer.exit_code == 1
    assert "forbidden" in answer.stderr
    assert "ghp_wrong_secret" not in answer.output + answer.stderr
    assert "ghp_wrong_secret" not in run("github", "--help").output


def test_content_of_a_field_may_be_on_a_host_that_the_settings_name(
    fake: FakeGitHub, run: Import, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Request] = []

    async def specs(request: Request) -> Response:
        asked.append(request)
        return PlainTextResponse("openapi: 3.0.0\n")

    with served(Starlette(routes=[Route("/apis/x.yaml", specs)])) as host:
        text = (
            "apiVersion: backstage.io/v1alpha1\nkind: API\nmetadata: {name: x}\nspec:\n"
            "  type: openapi\n  lifecycle: production\n  owner: web\n"
            f"  definition: {{$text: '{host}/apis/x.yaml?version=1'}}\n"
        )
        fake.repositories.append(repository("apis", 30, texts={CATALOG: text}))
        monkeypatch.setenv("FACTBOOK_IMPORTERS__GITHUB__DEFAULT__ORGANIZATIONS", "acme")
        monkeypatch.setenv("FACTBOOK_IMPORTERS__GITHUB__DEFAULT__TEXT_HOSTS", f"{host}/apis")
        assert run("run", "github").exit_code == 0
    with closing(sqlite3.connect(tmp_path / "factbook.db")) as connection:
        query = f"SELECT {DOCUMENT} FROM entities e WHERE ref = 'api:default/x'"  # noqa: S608
        [[document]] = connection.execute(query).fetchall()
    assert json.loads(document)["spec"]["definition"] == "openapi: 3.0.0\n"
    [request] = asked
    assert (str(request.url.query), "authorization" in request.headers) == ("version=1", False)
