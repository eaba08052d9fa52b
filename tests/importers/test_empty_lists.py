"""Lists that are empty for once, among others of the same part that are not."""

from collections.abc import Awaitable, Callable

import pytest

from factbook.importers.snapshot import Snapshot
from factbook.importers.writer import write_snapshot
from factbook.storage import Database
from tests.fakes import faults
from tests.fakes.aws.app import ROOT, Unit
from tests.fakes.gitlab.state import Account
from tests.fakes.kubernetes.objects import DEPLOYMENTS, STATEFUL_SETS
from tests.importers.accounts import AwsOrganization
from tests.importers.clusters import CLUSTER, ImportedCluster
from tests.importers.gitlab_group import GitlabGroup
from tests.importers.reading import IMPORTER, Imports

_NONE = faults.saying([], headers={"x-total": "0"})
_NO_STATEFUL_SETS = faults.saying({"kind": "StatefulSetList", "metadata": {}, "items": None})


class Reading:
    """An importer, and the parts of the catalog that it is read into."""

    def __init__(
        self, database: Database, read: Callable[[], Awaitable[Snapshot]], *keys: str
    ) -> None:
        self.imports = Imports(database)
        self.read = read
        self.keys = keys

    async def refs(self) -> list[str]:
        """The references in the parts after one more reading."""
        self.imports.now += 1_000
        target, now = self.imports.target, self.imports.now
        await write_snapshot(target, IMPORTER, await self.read(), now)
        several = [await self.imports.refs(f"import/{IMPORTER}/{key}") for key in self.keys]
        return [ref for refs in several for ref in refs]

    async def held(self) -> list[str]:
        """The references whose removal waits for a person."""
        records = [await self.imports.record(key) for key in self.keys]
        return [ref for record in records for ref in record.held]


def group() -> GitlabGroup:
    found = GitlabGroup()
    people = [Account(name, number) for number, name in enumerate(("alice", "bob", "carol"), 2)]
    found.people(*people, web=["alice"], shop=["bob"], data=["carol"])
    found.fake.groups[0].members = ["alice"]
    return found


@pytest.mark.parametrize(
    ("kind", "waiting"),
    [("subgroups", ["data", "shop", "web", "bob", "carol"]), ("group_members", ["bob", "carol"])],
)
async def test_a_group_that_shows_nothing_in_it_keeps_what_it_had(
    database: Database, kind: str, waiting: list[str]
) -> None:
    gitlab = group()
    reading = Reading(database, gitlab.read, "acme.groups", "acme.members")
    before = await reading.refs()
    # Members are read again when somebody is missing.
    for _ in range(2):
        gitlab.fake.fail(kind, _NONE, after=int(kind == "group_members"), times=3)
    assert await reading.refs() == before
    assert [ref.partition("/")[2] for ref in await reading.held()] == waiting
    gitlab.fake.recover()
    assert await reading.refs() == before
    assert await reading.held() == []


async def test_one_of_several_subgroups_goes_when_its_people_are_in_others(
    database: Database,
) -> None:
    gitlab = group()
    reading = Reading(database, gitlab.read, "acme.groups")
    await reading.refs()
    del gitlab.fake.groups[1]
    refs = ["group:default/acme", "group:default/data", "group:default/shop"]
    assert await reading.refs() == refs


async def test_a_resource_of_a_cluster_that_is_suddenly_empty_keeps_what_it_had(
    database: Database,
) -> None:
    cluster = ImportedCluster()
    for number in range(8):
        cluster.fake.add(DEPLOYMENTS, f"web-{number}", "payments")
    for number in range(4):
        cluster.fake.add(STATEFUL_SETS, f"db-{number}", "payments")
    reading = Reading(database, cluster.read, f"{CLUSTER}.workloads")
    before = await reading.refs()
    cluster.fake.fail(STATEFUL_SETS, _NO_STATEFUL_SETS)
    assert await reading.refs() == before
    assert len(await reading.held()) == 4


async def test_a_unit_that_suddenly_has_no_others_below_it_keeps_what_it_had(
    database: Database,
) -> None:
    units = [Unit("ou-exam-payments1", "Payments"), Unit("ou-exam-stock1234", "Stock")]
    units += [Unit(f"ou-exam-team{n:05}", f"Team {n}", units[0].id) for n in range(3)]
    accounts = AwsOrganization(units=tuple(units), systems=True)
    reading = Reading(database, accounts.read, "units")
    before = await reading.refs()
    assert len(before) == 5
    at_payments = [one for one in accounts.fake.units if one.parent != ROOT]
    accounts.fake.units = [one for one in accounts.fake.units if one.parent == ROOT]
    assert await reading.refs() == before
    assert len(await reading.held()) == 3
    accounts.fake.units += at_payments
    assert await reading.refs() == before
