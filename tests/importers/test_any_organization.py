"""Any sequence of faults of GitHub, between changes of an organization."""

import random

import pytest

from factbook.importers import held
from factbook.importers.writer import write_snapshot
from factbook.storage import Database
from tests.fakes import faults
from tests.fakes.github.faults import of_another_form, secondary_limit
from tests.fakes.github.state import Repository
from tests.importers.organization import CATALOG, Organization, file, member, repository, team
from tests.importers.reading import Imports

_FAULTS = (
    faults.bad_gateway,
    faults.unavailable,
    faults.not_json,
    faults.cut_off,
    secondary_limit,
    of_another_form,
    faults.saying({"data": {"organization": None}}),
    faults.saying({"errors": [{"type": "RATE_LIMITED", "message": "no"}]}),
    faults.saying({"data": {"organization": {"page": {
        "totalCount": 0, "nodes": [], "pageInfo": {"hasNextPage": False, "endCursor": None},
    }}}}),
)  # fmt: skip
_SET = "import/fake/acme.repositories"


class Acme:
    """An organization that changes, and the catalog that it is imported into."""

    def __init__(self, imports: Imports, dice: random.Random) -> None:
        self.imports = imports
        self.dice = dice
        self.count = 0
        self.organization = Organization()
        self.fake = self.organization.fake
        for _ in range(70):
            self.add()
        self.fake.teams = [team(f"team-{n}", n + 1, "alice") for n in range(30)]
        self.fake.members = [member("alice", 1)]

    def add(self) -> None:
        self.count += 1
        texts = {CATALOG: file(f"file-{self.count}")} if self.count % 3 == 0 else {}
        if self.count % 9 == 0:
            root = (
                "apiVersion: v1\nkind: Location\nmetadata: {name: all-%s}\nspec: {target: x.yaml}"
            )
            texts = {CATALOG: root % self.count, "x.yaml": file(f"below-{self.count}")}
        self.fake.repositories.append(repository(f"r{self.count}", self.count, texts=texts))

    def change(self) -> None:
        self.add()
        renamed, gone = self.dice.sample(self.fake.repositories, 2)
        renamed.old_names.append(renamed.name)
        renamed.name = f"{renamed.name}-{self.dice.randrange(9)}"
        self.fake.repositories.remove(gone)

    async def read(self) -> None:
        # GitHub asked to wait, which is over.
        self.organization.time.advance(3_600_000)
        self.imports.now += 1_000
        snapshot = await self.organization.read()
        await write_snapshot(self.imports.target, "fake", snapshot, self.imports.now)

    def refs(self) -> list[str]:
        return sorted(ref for one in self.fake.repositories for ref in _refs(one))

    async def converges(self) -> None:
        self.fake.recover()
        await self.read()
        if (await self.imports.record("acme.repositories")).held:
            actor = self.imports.actor
            await held.apply(self.imports.target, "fake", "acme.repositories", actor)
        assert await self.imports.refs(_SET) == self.refs()
        assert await self.people() == [30, 1]

    async def people(self) -> list[int]:
        """The number of groups, and of users."""
        parts = ("import/fake/acme.teams", "import/fake/acme.members")
        return [len(await self.imports.refs(part)) for part in parts]


def _refs(one: Repository) -> list[str]:
    number = one.number
    if number % 9 == 0:
        return [f"location:default/all-{number}", f"component:default/below-{number}"]
    name = f"file-{number}" if number % 3 == 0 else one.name.partition("/")[2]
    return [f"component:default/{name}"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_no_fault_removes_what_is_still_there_and_a_good_reading_converges(
    database: Database, seed: int
) -> None:
    dice = random.Random(seed)
    acme = Acme(Imports(database), dice)
    await acme.converges()
    for _ in range(8):
        before = set(acme.refs())
        if dice.random() < 0.5:
            acme.change()
        known = set(await acme.imports.refs(_SET))
        fault, times = dice.choice(_FAULTS), dice.choice([1, 4, 40])
        acme.fake.fail("graphql", fault, after=dice.randrange(5), times=times)
        await acme.read()
        acme.fake.recover()
        still = known & before & set(acme.refs())
        assert still <= set(await acme.imports.refs(_SET))
        assert await acme.people() == [30, 1]
        if dice.random() < 0.4:
            await acme.converges()
    await acme.converges()
