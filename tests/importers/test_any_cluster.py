"""Any sequence of faults of an API server, between changes of a cluster."""

import random

import pytest

from factbook.importers import writer
from factbook.importers.writer import write_snapshot
from factbook.storage import Database
from tests.fakes import faults
from tests.fakes.kubernetes.objects import DAEMON_SETS, DEPLOYMENTS, NAMESPACES, STATEFUL_SETS
from tests.importers.clusters import CLUSTER, ImportedCluster
from tests.importers.reading import Imports
from tests.soak import seeds

_FAULTS = (
    faults.bad_gateway,
    faults.unavailable,
    faults.not_json,
    faults.cut_off,
    faults.saying({"kind": "Status", "code": 403}, 403),
    faults.saying({"kind": "Status", "code": 410}, 410),
    faults.saying({"kind": "Status", "code": 429}, 429),
    faults.saying({"kind": "Status", "status": "Failure", "metadata": {}}),
    faults.saying({"kind": "DeploymentList", "metadata": {}, "items": []}),
    faults.saying({"kind": "DeploymentList", "metadata": {}, "items": [{}]}),
)
_PATHS = (NAMESPACES, DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS)
PART = f"{CLUSTER}.workloads"
_ID = "backstage.io/kubernetes-id"


class Workloads:
    """A cluster that changes, and the catalog that it is imported into."""

    def __init__(self, imports: Imports, dice: random.Random) -> None:
        self.imports = imports
        self.dice = dice
        self.count = 0
        self.cluster = ImportedCluster()
        self.fake = self.cluster.fake
        for name in ("payments", "stock"):
            self.fake.add(NAMESPACES, name, annotations={"backstage.io/owner": f"{name}-team"})
        for _ in range(60):
            self.add()

    def add(self) -> None:
        self.count += 1
        path = self.dice.choice(_PATHS[1:])
        namespace = self.dice.choice(["payments", "stock"])
        labels = {_ID: f"app-{self.count % 5}"} if self.count % 4 == 0 else {}
        self.fake.add(path, f"w{self.count}", namespace, labels)

    def change(self) -> None:
        self.add()
        path = self.dice.choice(_PATHS[1:])
        if every := self.fake.objects[path]:
            every.remove(self.dice.choice(every))
            self.dice.shuffle(every)

    async def read(self) -> None:
        self.cluster.time.advance(3_600_000)
        self.imports.now += 1_000
        snapshot = await self.cluster.read()
        await write_snapshot(self.imports.target, "fake", snapshot, self.imports.now)

    async def refs(self) -> set[str]:
        return set(await self.imports.refs(f"import/fake/{PART}"))

    def wanted(self) -> set[str]:
        found: set[str] = set()
        for one in (one for path in _PATHS[1:] for one in self.fake.objects[path]):
            id_ = one.get("labels", {}).get(_ID)
            place = f"default/{id_}" if id_ else f"{one['namespace']}/{one['name']}"
            found.add(f"component:{place}")
        return found

    async def converges(self) -> None:
        self.fake.recover()
        await self.read()
        if (await self.imports.record(PART)).held:
            await writer.apply_removals(self.imports.target, "fake", PART, self.imports.actor)
        assert await self.refs() == self.wanted()

    async def owners(self) -> set[str]:
        """The owners that components have, which are those of their namespaces."""
        rows = await self.imports.database.all("SELECT body FROM entities WHERE kind = 'component'")
        return {body.partition('"owner":"')[2].partition('"')[0] for (body,) in rows}


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(2, soak=6))
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_no_fault_removes_what_is_still_there_and_a_good_reading_converges(
    database: Database, seed: int
) -> None:
    dice = random.Random(seed)
    workloads = Workloads(Imports(database), dice)
    await workloads.converges()
    owners = await workloads.owners()
    assert owners == {"group:default/payments-team", "group:default/stock-team"}
    for _ in range(12):
        before = workloads.wanted()
        if dice.random() < 0.5:
            workloads.change()
        known = await workloads.refs()
        times = dice.choice([1, 4, 40])
        workloads.fake.fail(dice.choice(_PATHS), dice.choice(_FAULTS), times=times)
        await workloads.read()
        workloads.fake.recover()
        assert known & before & workloads.wanted() <= await workloads.refs()
        assert owners <= await workloads.owners()
        if dice.random() < 0.4:
            await workloads.converges()
            assert await workloads.owners() == owners
    await workloads.converges()
