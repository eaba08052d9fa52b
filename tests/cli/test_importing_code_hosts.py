"""`factbook import gitlab` and `factbook import gitea`: planning, writing, and credentials."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.fakes.fake import Fake
from tests.fakes.gitea import state as gitea
from tests.fakes.gitlab.state import Account
from tests.fakes.serving import served
from tests.importers.gitea_organization import GiteaOwner, own
from tests.importers.gitlab_group import GitlabGroup, project
from tests.importers.organization import CATALOG, file
from tests.integrations.gitea.asking import HOST
from tests.integrations.gitea.asking import TOKEN as GITEA_TOKEN
from tests.integrations.gitlab.asking import TOKEN as GITLAB_TOKEN


def gitlab() -> Fake:
    group = GitlabGroup(
        project("web/shop", 1, texts={CATALOG: file("shop")}),
        project("web/broken", 2, texts={CATALOG: "a: ["}),
        project("plain", 3),
        project("old", 4, is_archived=True),
    )
    group.people(Account("alice", 2), web=["alice"])
    return group.fake


def forgejo() -> Fake:
    organization = GiteaOwner(
        own("shop", 1, texts={CATALOG: file("shop")}),
        own("broken", 2, texts={CATALOG: "a: ["}),
        own("plain", 3),
        own("old", 4, is_archived=True),
    )
    organization.fake.accounts = [gitea.Account("alice", 2)]
    organization.fake.teams = [gitea.Team("web", 1, ["alice"]), gitea.Team("acme", 2)]
    return organization.fake


# For each kind: the fake, what names its owner, the table of its account, and the parts.
KINDS: dict[str, tuple[Callable[[], Fake], list[str], dict[str, str], list[str]]] = {
    "gitlab": (gitlab, ["--group", "acme"], {"TOKEN": GITLAB_TOKEN}, ["projects", "groups"]),
    "gitea": (
        forgejo,
        ["--org", "acme"],
        {"TOKEN": GITEA_TOKEN, "HOST": HOST},
        ["repositories", "teams"],
    ),
}
API = {"gitlab": "/api/v4", "gitea": "/api/v1"}
kinds = pytest.mark.parametrize("kind", list(KINDS))


@pytest.mark.slow
@kinds
def test_a_plan_and_an_import_tell_the_same_and_the_next_one_writes_nothing(
    kind: str, factbook: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, owner, table, words = KINDS[kind]
    monkeypatch.setenv("FACTBOOK_OUTGOING_NETWORKS", "127.0.0.0/8")
    arguments = ["import", kind, *owner, f"--database-url=sqlite:///{tmp_path}/factbook.db"]

    def parts(*more: str) -> list[Any]:
        answer = factbook(*arguments, "--json", *more)
        assert answer.exit_code == 0, answer.stderr
        return [
            (part["part"], part["state"], part["changes"])
            for part in json.loads(answer.stdout)["parts"]
        ]

    with served(made()) as url:
        for name, value in {**table, "API_URL": f"{url}{API[kind]}"}.items():
            monkeypatch.setenv(f"FACTBOOK_INTEGRATIONS__{kind.upper()}__DEFAULT__{name}", value)
        shown = factbook(*arguments, "--plan")
        assert "broken catalog-info.yaml:2: is not valid YAML" in shown.stderr
        assert "Left out: 1 archived" in shown.stdout
        planned = parts("--plan")
        assert parts() == planned
        assert [changes["unchanged"] for _, _, changes in parts()] == [3, 2, 1]
    names = [f"{kind}/acme.{word}" for word in (*words, "members")]
    nothing = {"updated": 0, "removed": 0, "unchanged": 0}
    assert planned == [
        (name, "complete", {"added": added, **nothing})
        for name, added in zip(names, (3, 2, 1), strict=True)
    ]


@kinds
def test_an_import_needs_a_credential_and_an_owner(
    kind: str, factbook: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, owner, _, _ = KINDS[kind]
    database = f"--database-url=sqlite:///{tmp_path}/factbook.db"
    without = factbook("import", kind, *owner, database)
    assert (without.exit_code, f"{kind.upper()}_TOKEN" in without.stderr) == (2, True)
    monkeypatch.setenv(f"{kind.upper()}_TOKEN", "a-secret-of-tests")
    nobody = factbook("import", kind, "--host", HOST, database)
    assert (nobody.exit_code, " ".join(owner) in nobody.stderr) == (2, True)
    assert "a-secret-of-tests" not in nobody.output + nobody.stderr
    assert "a-secret-of-tests" not in factbook("import", kind, "--help").output
