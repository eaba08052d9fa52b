"""Import of a GitHub organization from the command line: `python -m bench.imports [REPOSITORIES]`.

The fake GitHub of the tests takes 50 ms for each answer, beside its making. Of the repositories
30 % have a catalog file, a tenth of these a location with a pattern. Each import is a process of
its own: first into an empty database, then with nothing changed, then after one commit.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Member, Repository, Team, Token
from tests.fakes.serving import served

_CREDENTIAL: Final = "ghp_bench"
_LATENCY: Final = 0.05
_TEAMS: Final = 60
_MEMBERS: Final = 400
_TABLE: Final = "FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT"
_ENTITY: Final = """apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: {name}
  description: Sells what people need.
  tags: [python, shop]
spec: {{type: service, lifecycle: production, owner: team-{team:02}}}
"""
_LOCATION: Final = """---
apiVersion: backstage.io/v1alpha1
kind: Location
metadata: {{name: {name}-all}}
spec: {{targets: ['services/**/catalog-info.yaml']}}
"""


class Figures(NamedTuple):
    """What one import took."""

    what: str
    seconds: float
    cpu_seconds: float
    requests: int
    points: int


def organization(count: int) -> FakeGitHub:
    """A fake with an organization of so many repositories."""
    fake = FakeGitHub(map(_repository, range(count)), [Token(_CREDENTIAL)], seconds=_LATENCY)
    fake.members = [Member(f"person-{n}", n + 1, f"Person {n}") for n in range(_MEMBERS)]
    fake.teams = [_team(n, count) for n in range(_TEAMS)]
    return fake


def _repository(number: int) -> Repository:
    name, texts = f"repository-{number:04}", {".github/CODEOWNERS": "* @acme/team-01\n"}
    if number % 10 < 3:
        texts["catalog-info.yaml"] = _ENTITY.format(name=name, team=number % _TEAMS)
    if number % 100 < 3:
        texts["catalog-info.yaml"] += _LOCATION.format(name=name)
        for part in range(3):
            text = _ENTITY.format(name=f"{name}-{part}", team=number % _TEAMS)
            texts[f"services/{part}/catalog-info.yaml"] = text
    if number % 2:
        del texts[".github/CODEOWNERS"]
    encoded = {path: text.encode() for path, text in texts.items()}
    return Repository(
        f"acme/{name}",
        number=number + 1,
        files=[*encoded],
        texts=encoded,
        languages=["Python"],
        topics=["shop"],
        description="Sells what people need.",
    )


def _team(number: int, count: int) -> Team:
    owned = range(number, count, _TEAMS)
    members = [f"person-{n}" for n in range(number, _MEMBERS, _TEAMS)]
    permissions = {f"acme/repository-{n:04}": "ADMIN" for n in owned}
    return Team(f"team-{number:02}", number + 1, members, permissions)  # type: ignore[arg-type]


def measured(what: str, fake: FakeGitHub, folder: Path, environment: Mapping[str, str]) -> Figures:
    """Run one import in a process of its own."""
    token, before = fake.tokens[_CREDENTIAL], fake.requests.total()
    token.used = dict.fromkeys(token.used, 0)
    command = [str(Path(sys.executable).with_name("factbook")), "import", "github", "--org", "acme"]
    began = time.perf_counter()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **environment}, stdout=output, stderr=output
        )
        _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError((folder / "output").read_text())
    seconds, requests = time.perf_counter() - began, fake.requests.total() - before
    points = sum(token.used.values())
    return Figures(what, seconds, used.ru_utime + used.ru_stime, requests, points)


def main(count: int = 1_000) -> None:
    """Print what the imports took."""
    fake = organization(count)
    with tempfile.TemporaryDirectory() as name, served(fake) as url:
        folder = Path(name)
        environment = {
            "FACTBOOK_DATABASE_URL": f"sqlite:///{folder}/factbook.db",
            "FACTBOOK_OUTGOING_NETWORKS": "127.0.0.0/8",
            f"{_TABLE}__TOKEN": _CREDENTIAL,
            f"{_TABLE}__API_URL": url,
        }
        for what in ("first", "unchanged", "one commit"):
            if what == "one commit":
                fake.repositories[0].commits += 1
            found = measured(what, fake, folder, environment)
            print(
                f"{found.what}: {found.seconds:.1f} s, {found.cpu_seconds:.2f} s of CPU "
                f"({found.cpu_seconds / count * 1000:.2f} ms a repository), "
                f"{found.requests} requests, {found.points} points"
            )
        print((folder / "output").read_text())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
