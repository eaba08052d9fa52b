"""Any sequence of files, whole and not, of a directory that changes meanwhile."""

import random
from pathlib import Path

import pytest

from factbook.importers import writer
from factbook.importers.writer import write_snapshot
from factbook.storage import Database
from tests.importers.directories import LdifFile, group, person
from tests.importers.reading import Imports
from tests.soak import seeds

_SETS = ("people", "groups")


class Staff:
    """People and groups that change, and the catalog that they are imported into."""

    def __init__(self, imports: Imports, folder: Path, dice: random.Random) -> None:
        self.imports = imports
        self.dice = dice
        self.file = LdifFile(folder)
        self.count = 0
        self.people: dict[int, str] = {}
        self.groups = {1_000 + n: f"group-{n}" for n in range(8)}
        for _ in range(40):
            self.add()

    def add(self) -> None:
        self.count += 1
        self.people[self.count] = f"person-{self.count}"

    def change(self) -> None:
        self.add()
        renamed, gone = self.dice.sample(sorted(self.people), 2)
        self.people[renamed] = f"renamed-{renamed}-{self.dice.randrange(9)}"
        del self.people[gone]

    def records(self) -> list[str]:
        people = [person(uid, number) for number, uid in self.people.items()]
        members = [uid for number, uid in self.people.items() if number % 2]
        groups = [group(cn, *members, number=n) for n, cn in self.groups.items()]
        given = [*people, *groups]
        self.dice.shuffle(given)
        return given

    def spoil(self) -> None:
        """Write the file as something that went wrong leaves it."""
        given = self.records()
        text = "version: 1\n\n" + "".join(given)
        match self.dice.randrange(6):
            case 0:  # cut off anywhere but behind a record, where nobody can tell
                end = self.dice.randrange(len(text))
                while text[:end].endswith("\n\n"):
                    end -= 1
                text = text[:end]
            case 1:
                text = ""
            case 2:  # a disk that was full
                text = text.replace("inetOrgPerson", "inetOrgPerson\nmail:: %%%", 3)
            case 3:
                text = text.replace("dn: uid", "dn: ", 2)
            case 4:
                text = f"# extended LDIF\n{''.join(given[:9])}# numEntries: {len(given)}\n"
            case _:
                self.file.path.unlink(missing_ok=True)
                return
        self.file.path.write_text(text)

    async def read(self) -> None:
        self.imports.now += 1_000
        snapshot = await self.file.read()
        await write_snapshot(self.imports.target, "fake", snapshot, self.imports.now)

    async def refs(self) -> set[str]:
        return {ref for key in _SETS for ref in await self.imports.refs(f"import/fake/{key}")}

    def wanted(self) -> set[str]:
        users = {f"user:default/{uid}" for uid in self.people.values()}
        return users | {f"group:default/{cn}" for cn in self.groups.values()}

    async def converges(self) -> None:
        self.file.write(*self.records())
        await self.read()
        for key in _SETS:
            if (await self.imports.record(key)).held:
                await writer.apply_removals(self.imports.target, "fake", key, self.imports.actor)
        assert await self.refs() == self.wanted()


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(2, soak=6))
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_no_bad_file_removes_what_is_still_there_and_a_whole_one_converges(
    database: Database, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    staff = Staff(Imports(database), tmp_path, dice)
    await staff.converges()
    for _ in range(15):
        before = staff.wanted()
        if dice.random() < 0.5:
            staff.change()
        known = await staff.refs()
        staff.spoil()
        await staff.read()
        assert known & before & staff.wanted() <= await staff.refs()
        if dice.random() < 0.3:
            await staff.converges()
    await staff.converges()
