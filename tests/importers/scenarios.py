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
    """Let the organizations be those of a scenario from now on."""
    fake.repositories, fake.teams = [], []
    organizations: dict[str, list[str]] = {}
    for one in (given, *given.get("others", ())):
        org = one.get("org", "acme")
        for each in one["repositories"]:
            number = each.get("id", len(fake.repositories) + 1)
            fake.repositories.append(repository(each["name"], number, texts=each.get("files", {})))
            fake.repositories[-1].name = f"{org}/{each['name']}"
        for each in one["teams"]:
            fake.teams.append(team(each["slug"], len(fake.teams) + 1, *each["members"]))
            fake.teams[-1].organization = org
            fake.teams[-1].permissions = {
                f"{org}/{name}": "ADMIN" for name in each.get("admin", ())
            }
        for login in one["members"]:
            organizations.setdefault(login, []).append(org)
    fake.members = [member(login, number) for number, login in enumerate(organizations, 1)]
    for each in fake.members:
        each.organizations = organizations[each.login]


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
