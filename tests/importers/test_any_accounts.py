"""Any sequence of faults of AWS, between changes of an organization."""

import random

import pytest

from factbook.importers import writer
from factbook.importers.writer import write_snapshot
from factbook.storage import Database
from tests.fakes import faults
from tests.fakes.aws import faults as aws_faults
from tests.fakes.aws.app import Account, Unit
from tests.importers.accounts import AwsOrganization
from tests.importers.reading import Imports
from tests.soak import seeds

_FAULTS = (
    aws_faults.throttled,
    aws_faults.denied,
    aws_faults.expired,
    aws_faults.outage,
    aws_faults.error_within,
    aws_faults.same_token,
    faults.bad_gateway,
    faults.not_json,
    faults.cut_off,
    faults.saying({}),
    faults.saying({"Accounts": [], "Tags": [], "OrganizationalUnits": [], "Roots": []}),
)
_ACTIONS = ("ListAccounts", "ListTagsForResource", "ListRoots", "ListOrganizationalUnitsForParent")
_SETS = ("import/fake/accounts", "import/fake/units")
_NAMES = ("Prod", "prod", "Sand/box", "Data Lake", "Log: archive")


class Accounts:
    """An organization that changes, and the catalog that it is imported into."""

    def __init__(self, imports: Imports, dice: random.Random) -> None:
        self.imports = imports
        self.dice = dice
        self.count = 0
        units = tuple(Unit(f"ou-exam-{n:08}", f"unit {n % 3}") for n in range(6))
        self.organization = AwsOrganization(units=units, systems=True)
        self.fake = self.organization.fake
        for _ in range(50):
            self.add()

    def add(self) -> None:
        self.count += 1
        name = self.dice.choice(_NAMES) if self.count % 5 == 0 else f"account {self.count}"
        unit = self.dice.choice(self.fake.units).id
        self.fake.accounts.append(Account(name, self.count, (unit,), tags={"team": "core"}))

    def change(self) -> None:
        self.add()
        renamed, moved, gone = self.dice.sample(self.fake.accounts, 3)
        renamed.name = f"renamed {self.dice.randrange(9)}"
        moved.units = (self.dice.choice(self.fake.units).id,)
        self.fake.accounts.remove(gone)

    async def read(self) -> None:
        self.organization.time.advance(3_600_000)
        self.imports.now += 1_000
        snapshot = await self.organization.read()
        await write_snapshot(self.imports.target, "fake", snapshot, self.imports.now)

    async def ids(self) -> set[str]:
        """The ids of the accounts that the catalog holds, and of their units."""
        rows = await self.imports.database.all(
            "SELECT e.body FROM entities e JOIN sets s ON s.id = e.set_id WHERE s.name IN (?, ?)",
            _SETS,
        )
        marks = [body.partition('external-id":"')[2].partition('"')[0] for (body,) in rows]
        assert len(marks) == len(set(marks))
        return {mark.rpartition("/")[2] for mark in marks}

    def wanted(self) -> set[str]:
        return {one.id for one in self.fake.accounts} | {one.id for one in self.fake.units}

    async def converges(self) -> None:
        self.fake.recover()
        await self.read()
        for key in ("accounts", "units"):
            if (await self.imports.record(key)).held:
                await writer.apply_removals(self.imports.target, "fake", key, self.imports.actor)
        assert await self.ids() == self.wanted()


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, soak=6))
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_no_fault_removes_what_is_still_there_and_a_good_reading_converges(
    database: Database, seed: int
) -> None:
    dice = random.Random(seed)
    accounts = Accounts(Imports(database), dice)
    await accounts.converges()
    for _ in range(10):
        if dice.random() < 0.5:
            accounts.change()
        known = await accounts.ids()
        times = dice.choice([1, 6, 60])
        accounts.fake.fail(
            dice.choice(_ACTIONS), dice.choice(_FAULTS), after=dice.randrange(3), times=times
        )
        await accounts.read()
        accounts.fake.recover()
        assert known & accounts.wanted() <= await accounts.ids()
        if dice.random() < 0.4:
            await accounts.converges()
    await accounts.converges()
