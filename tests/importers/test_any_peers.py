"""Any sequence of faults of another catalog, between changes of it."""

import random

import pytest

from factbook.importers import records, writer
from factbook.importers.writer import write_snapshot
from factbook.storage import Database
from tests.fakes import faults
from tests.fakes.backstage import FakeBackstage
from tests.importers.peer import Peer
from tests.importers.reading import Imports
from tests.service import component
from tests.soak import seeds

_SET = "import/catalog/entities"
_FAULTS = (
    faults.bad_gateway,
    faults.unavailable,
    faults.not_json,
    faults.cut_off,
    faults.saying({"error": {"name": "AuthenticationError"}}, 401),
    faults.saying({"message": "slow down"}, 429, {"retry-after": "60"}),
    faults.saying({"items": [], "totalItems": 0, "pageInfo": {}}),
    faults.saying({"items": [], "totalItems": 700, "pageInfo": {}}),
    faults.saying({"items": [], "totalItems": 0}),
)


class ChangingPeer:
    """Another catalog that changes, and the one that it is imported into."""

    def __init__(self, imports: Imports, dice: random.Random) -> None:
        self.imports = imports
        self.dice = dice
        self.count = 0
        self.fake = FakeBackstage()
        self.peer = Peer(self.fake)
        for _ in range(700):
            self.change()

    def change(self) -> None:
        """Add an entity."""
        self.count += 1
        self.fake.add(component(f"c{self.count}"))

    def remove(self) -> None:
        self.fake.remove(self.dice.choice([*self.fake.entities]))

    def refs(self) -> list[str]:
        names = (one["metadata"]["name"] for one in self.fake.entities.values())
        return sorted(f"component:default/{name}" for name in names)

    async def read(self) -> None:
        self.peer.time.advance(3_600_000)
        self.imports.now += 1_000
        snapshot = await self.peer.read()
        await write_snapshot(self.imports.target, "catalog", snapshot, self.imports.now)

    async def imported(self) -> list[str]:
        return await self.imports.refs(_SET)

    async def converges(self) -> None:
        await self.read()
        [record] = await records.list_part_records(self.imports.database)
        if record.held:
            await writer.apply_removals(
                self.imports.target, "catalog", "entities", self.imports.actor
            )
        assert await self.imported() == self.refs()


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, soak=3))
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_no_fault_removes_what_is_still_there_and_a_good_reading_converges(
    database: Database, seed: int
) -> None:
    dice = random.Random(seed)
    catalog = ChangingPeer(Imports(database), dice)
    await catalog.converges()
    for _ in range(8):
        if dice.random() < 0.5:
            catalog.change()
            catalog.remove()
        known = set(await catalog.imported())
        fault, times = dice.choice(_FAULTS), dice.choice([1, 4, 40])
        catalog.fake.fail("page", fault, after=dice.randrange(3), times=times)
        await catalog.read()
        catalog.fake.recover()
        assert known & set(catalog.refs()) <= set(await catalog.imported())
        if dice.random() < 0.4:
            await catalog.converges()
    await catalog.converges()
