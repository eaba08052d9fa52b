"""Lists of code hosts that change between two of their pages."""

from collections.abc import Callable

import pytest
from starlette.requests import Request
from starlette.responses import Response

from factbook.importers.snapshot import SnapshotPart
from tests.fakes.faults import Answer, Fault
from tests.fakes.gitlab.state import Group
from tests.importers.gitea_organization import GiteaOwner, own
from tests.importers.gitlab_group import GitlabGroup, project

_DELETED = [5, 60, 145]


def after(change: Callable[[], None]) -> Fault:
    """A good answer, and a change behind it."""

    async def fault(request: Request, answer: Answer) -> Response:
        response = await answer(request)
        change()
        return response

    return fault


def numbers(part: SnapshotPart) -> set[int]:
    return {int(item.external_id.rpartition("/")[2]) for item in part.items}


@pytest.mark.parametrize("deleted", _DELETED)
async def test_a_project_that_goes_while_another_comes_hides_no_third(deleted: int) -> None:
    group = GitlabGroup(*(project(f"p{number:03}", number) for number in range(1, 151)))

    def change() -> None:
        group.fake.projects.pop(deleted - 1)
        group.fake.projects.append(project("new", 999))

    group.fake.fail("group_projects", after(change))
    part = await group.part()
    hidden = set(range(1, 151)) - {deleted} - numbers(part)
    assert not (part.complete and hidden)
    assert [item.external_id for item in part.items][:2] == [
        f"gitlab.com/project/{number}" for number in (1, 2)
    ]
    assert (await group.part()).complete


@pytest.mark.parametrize("deleted", _DELETED)
async def test_a_subgroup_that_goes_while_another_comes_hides_no_third(deleted: int) -> None:
    group = GitlabGroup()
    group.fake.groups += [Group(f"acme/g{number:03}", number) for number in range(2, 151)]

    def change() -> None:
        group.fake.groups.pop(deleted - 1)
        group.fake.groups.append(Group("acme/new", 999))

    group.fake.fail("subgroups", after(change))
    part = await group.part("groups")
    hidden = set(range(1, 151)) - {deleted} - numbers(part)
    assert not (part.complete and hidden)


@pytest.mark.parametrize("deleted", [5, 35, 75])
async def test_a_repository_that_goes_while_another_comes_hides_no_third(deleted: int) -> None:
    organization = GiteaOwner(*(own(f"p{number:03}", number) for number in range(1, 81)))

    def change() -> None:
        organization.fake.repositories.pop(deleted - 1)
        organization.fake.repositories.append(own("new", 999))

    organization.fake.fail("search", after(change))
    part = await organization.part()
    hidden = set(range(1, 81)) - {deleted} - numbers(part)
    assert not (part.complete and hidden)
