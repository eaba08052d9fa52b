"""Lists of code hosts that change between two of their pages."""

import itertools
import random
from collections.abc import Callable
from functools import partial

import pytest
from starlette.requests import Request
from starlette.responses import Response

from factbook.importers.snapshot import SnapshotPart
from factbook.importers.writer import write_snapshot
from factbook.storage import Database
from tests.fakes.fake import Fake
from tests.fakes.faults import Answer, Fault, well
from tests.fakes.gitea import state as gitea
from tests.fakes.gitlab.state import Account, Group
from tests.importers.gitea_organization import GiteaOwner, own
from tests.importers.gitlab_group import GitlabGroup, project
from tests.importers.reading import IMPORTER, Imports
from tests.soak import seeds

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


@pytest.mark.slow
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


@pytest.mark.slow
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


class Crowd:
    """People in an order that nobody has chosen, some of whom come and go."""

    def __init__(self, count: int, dice: random.Random) -> None:
        self.dice = dice
        self.count = count
        self.names = [f"u{number}" for number in range(count)]

    @staticmethod
    def number(name: str) -> int:
        """The id of somebody."""
        return int(name[1:]) + 10

    def change(self) -> None:
        """Somebody goes, or comes to some place, or both."""
        if self.dice.random() < 0.7:
            self.names.pop(self.dice.randrange(len(self.names)))
        if self.dice.random() < 0.7:
            self.count += 1
            place = self.dice.choice([len(self.names), self.dice.randrange(len(self.names))])
            self.names.insert(place, f"u{self.count}")


def changing(
    fake: Fake, kind: str, crowd: Crowd, change: Callable[[], None], always: set[str]
) -> None:
    """Let some answers of a kind have a change behind them; `always` are those who stay."""

    def changed() -> None:
        crowd.change()
        always.intersection_update(crowd.names)
        change()

    for _ in range(8):
        behind = after(changed)
        if crowd.dice.random() < 0.5:
            fake.fail(kind, behind)
        else:
            fake.fail(kind, well)


async def test_members_that_come_and_go_between_pages_hide_nobody_who_stays(
    subtests: pytest.Subtests,
) -> None:
    for seed in seeds(4, soak=12):
        with subtests.test(seed=seed):
            await check_members_of_gitlab(seed)


async def check_members_of_gitlab(seed: int) -> None:
    crowd = Crowd(150, random.Random(seed))
    group = GitlabGroup()

    def change() -> None:
        group.fake.groups[0].members = list(crowd.names)

    every = range(400)
    group.fake.accounts = [Account(f"u{n}", Crowd.number(f"u{n}")) for n in every]
    change()
    always = set(crowd.names)
    changing(group.fake, "group_members", crowd, change, always)
    part = await group.part("members")
    group.fake.recover()
    assert not part.complete or {Crowd.number(name) for name in always} <= numbers(part)
    part = await group.part("members")
    assert part.complete
    assert {Crowd.number(name) for name in crowd.names} == numbers(part)


@pytest.mark.slow
async def test_people_and_teams_that_come_and_go_between_pages_hide_none_that_stays(
    subtests: pytest.Subtests,
) -> None:
    for kind, seed in itertools.product(("members", "teams"), seeds(4, soak=12)):
        with subtests.test(kind=kind, seed=seed):
            await check_crowd_of_gitea(kind, seed)


async def check_crowd_of_gitea(kind: str, seed: int) -> None:
    crowd = Crowd(90, random.Random(seed))
    organization = GiteaOwner()

    def change() -> None:
        if kind == "teams":
            organization.fake.teams = [gitea.Team(n, Crowd.number(n)) for n in crowd.names]
        else:
            organization.fake.accounts = [gitea.Account(n, Crowd.number(n)) for n in crowd.names]

    change()
    always = set(crowd.names)
    changing(organization.fake, kind, crowd, change, always)
    part = await organization.part(kind)
    organization.fake.recover()
    assert not part.complete or {Crowd.number(name) for name in always} <= numbers(part)
    part = await organization.part(kind)
    assert part.complete
    assert {Crowd.number(name) for name in crowd.names} == numbers(part)


async def test_a_list_that_changes_once_is_whole_by_the_third_reading() -> None:
    group = GitlabGroup()
    names = [f"u{number}" for number in range(150)]
    group.fake.accounts = [Account(name, Crowd.number(name)) for name in [*names, "u150"]]
    group.fake.groups[0].members = names

    def change() -> None:
        names.pop(0)
        names.append("u150")

    group.fake.fail("group_members", after(change))
    part = await group.part("members")
    assert part.complete
    assert numbers(part) == {Crowd.number(name) for name in names}
    assert group.fake.requests["group_members"] == 6


async def test_a_list_of_one_page_is_read_once_and_one_of_two_pages_twice() -> None:
    group = GitlabGroup()
    for count, requests in ((100, 1), (101, 4)):
        names = [f"u{number}" for number in range(count)]
        group.fake.accounts = [Account(name, Crowd.number(name)) for name in names]
        group.fake.groups[0].members = names
        group.fake.requests.clear()
        assert (await group.part("members")).complete
        assert group.fake.requests["group_members"] == requests


def moved(group: GitlabGroup, name: str, place: int) -> None:
    """Let somebody be a member of one group alone."""
    for number, one in enumerate(group.fake.groups):
        one.members = [member for member in one.members if member != name]
        if number == place:
            one.members.append(name)


@pytest.mark.parametrize("seed", seeds(1, soak=4))
async def test_who_goes_from_one_group_to_another_stays_in_the_catalog(
    database: Database, seed: int
) -> None:
    dice, imports = random.Random(seed), Imports(database)
    moving, staying = [f"u{n}" for n in range(4)], [f"u{n}" for n in range(10, 18)]
    group = GitlabGroup()
    people = (Account(name, Crowd.number(name)) for name in [*moving, *staying])
    group.people(*people, **{f"g{n}": [name] for n, name in enumerate(staying[1:])})
    group.fake.groups[0].members = [staying[0], *moving]
    everybody = sorted(f"user:default/{name}" for name in [*moving, *staying])

    async def refs() -> list[str]:
        imports.now += 1_000
        await write_snapshot(imports.target, IMPORTER, await group.read(), imports.now)
        return await imports.refs(f"import/{IMPORTER}/acme.members")

    for number in range(8):
        for name in moving[: dice.randrange(3) if number else 0]:
            group.fake.fail("group_members", well, times=dice.randrange(8))
            group.fake.fail("group_members", after(partial(moved, group, name, dice.randrange(8))))
        assert await refs() == everybody
        group.fake.recover()
    group.fake.requests.clear()
    assert await refs() == everybody
    assert group.fake.requests["group_members"] == 8
    moved(group, moving[0], 9)
    assert await refs() == [ref for ref in everybody if ref != f"user:default/{moving[0]}"]
    assert group.fake.requests["group_members"] == 24
