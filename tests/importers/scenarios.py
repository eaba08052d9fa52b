"""Organizations and groups that reports describe in JSON, at a fake of their code host."""

from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Token as GithubToken
from tests.fakes.gitlab.app import FakeGitLab
from tests.fakes.gitlab.state import Account, Group
from tests.fakes.gitlab.state import Token as GitlabToken
from tests.importers.gitlab_group import project
from tests.importers.organization import member, repository, team
from tests.integrations.github import asking as github_asking
from tests.integrations.gitlab import asking as gitlab_asking

DATA = Path(__file__).parents[1] / "data"


def scenario(report: str, name: str = "scenario.json") -> Any:
    """What a report describes."""
    return msgspec.json.decode((DATA / "reports" / report / name).read_bytes())


def github(given: Any) -> FakeGitHub:
    """A fake GitHub with the organization of a scenario."""
    fake = FakeGitHub([], [GithubToken(github_asking.TOKEN)])
    become(fake, given)
    return fake


def become(fake: FakeGitHub, given: Any) -> None:
    """Let the organization be that of a scenario from now on."""
    fake.repositories = [
        repository(one["name"], one.get("id", number), texts=one.get("files", {}))
        for number, one in enumerate(given["repositories"], 1)
    ]
    fake.teams = [
        team(one["slug"], number, *one["members"]) for number, one in enumerate(given["teams"], 1)
    ]
    fake.members = [member(login, number) for number, login in enumerate(given["members"], 1)]


def gitlab(given: Any) -> FakeGitLab:
    """A fake GitLab with the groups and projects of a scenario."""
    fake = FakeGitLab([], [GitlabToken(gitlab_asking.TOKEN, limit=1_000_000)])
    for one in given["groups"]:
        people = one.get("members", [])
        fake.accounts += [
            Account(each["username"], each["id"], each.get("name", ""), each.get("state", "active"))
            for each in people
        ]
        names = [each["username"] for each in people]
        fake.groups.append(Group(one["path"], one["id"], names, **_marks(one)))
    fake.projects = [
        project(
            one["path"].removeprefix("acme/"), one["id"], texts=one.get("files", {}), **_marks(one)
        )
        for one in given["projects"]
    ]
    return fake


def _marks(one: Any) -> dict[str, Any]:
    fields = one.get("fields", {})
    return {"marked_for_deletion_on": fields.get("marked_for_deletion_on")}
