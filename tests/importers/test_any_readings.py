"""Any sequence of readings, good and bad, of a system that changes meanwhile."""

import random
from collections.abc import Callable

import pytest

from factbook.importers import writer
from factbook.importers.snapshot import ImportedItem, ReadingProblem, SnapshotPart
from factbook.storage import Database
from tests.importers.reading import IMPORTER, PART, Imports, item, part
from tests.service import component
from tests.soak import seeds

_RIGHTS = ("private", "public")
_FAILED = ReadingProblem("", "answered 429")


class System:
    """Things with ids that outlive their names, as some system holds them."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.things: dict[int, str] = {}
        self._next = 0
        for _ in range(dice.randrange(40)):
            self.add()

    def add(self) -> None:
        self._next += 1
        self.things[self._next] = f"thing-{self._next}"

    def change(self) -> None:
        """Add, rename and remove some."""
        for _ in range(self.dice.randrange(4)):
            self.add()
        for id_ in self._some(4):
            self.things[id_] = f"renamed-{id_}-{self.dice.randrange(3)}"
        for id_ in self._some(self.dice.choice([2, 2, 15])):
            del self.things[id_]

    def _some(self, most: int) -> list[int]:
        count = min(self.dice.randrange(most + 1), len(self.things))
        return self.dice.sample(sorted(self.things), count)

    def items(self) -> list[ImportedItem]:
        return [_thing(id_, name) for id_, name in self.things.items()]

    def names(self) -> list[str]:
        return sorted(self.things.values())

    def well(self) -> SnapshotPart:
        return part(*self.items(), rights=_RIGHTS)

    def truncated(self) -> SnapshotPart:
        """Pages up to a 429."""
        end = self.dice.randrange(len(self.things) + 1)
        given = self.items()[:end]
        return part(*given, complete=False, problems=[_FAILED], rights=_RIGHTS)

    def failed(self) -> SnapshotPart:
        return part(complete=False, problems=[_FAILED])

    def empty(self) -> SnapshotPart:
        """A good answer without anything in it."""
        return part(rights=_RIGHTS)

    def narrowed(self) -> SnapshotPart:
        """A good answer to a credential that has lost a right."""
        given = [one for one in self.items() if self.dice.random() < 0.7]
        return part(*given, rights=_RIGHTS[1:])

    def broken(self) -> SnapshotPart:
        """Files that cannot be read, and entities that are not valid."""
        given, unread = [], []
        for one in self.items():
            match self.dice.randrange(4):
                case 0:
                    unread.append(one.origin)
                case 1:
                    given.append(item("", origin=one.origin, entity={"kind": "?"}))
                case _:
                    given.append(one)
        return part(*given, unread=unread, rights=_RIGHTS)


def _thing(id_: int, name: str) -> ImportedItem:
    origin, external_id = f"repository {id_}", f"repository/{id_}"
    return item(name, origin=origin, external_id=external_id, entity=component(name))


async def _converges(imports: Imports, system: System, uids: dict[int, str | None]) -> None:
    """A complete reading is what the catalog holds, once held removals are applied.

    What was there at the last one has the id that it had then, whatever its name is now.
    """
    result = await imports.write(system.well())
    if result.record.held:
        await writer.apply_removals(imports.target, IMPORTER, PART, imports.actor)
    assert await imports.names() == system.names()
    now = {id_: await imports.uid(name) for id_, name in system.things.items()}
    assert {id_: now[id_] for id_ in uids if id_ in now} == {
        id_: uid for id_, uid in uids.items() if id_ in now
    }
    uids.clear()
    uids.update(now)


@pytest.mark.parametrize("seed", seeds(3, soak=8))
async def test_no_bad_reading_removes_what_is_still_there_and_a_good_one_converges(
    database: Database, seed: int
) -> None:
    system, imports = System(random.Random(seed)), Imports(database)
    uids: dict[int, str | None] = {}
    await _converges(imports, system, uids)
    bad: list[Callable[[], SnapshotPart]] = [
        system.truncated,
        system.failed,
        system.empty,
        system.narrowed,
        system.broken,
    ]
    for _ in range(25):
        before = dict(system.things)
        if system.dice.random() < 0.4:
            system.change()
        known = set(await imports.names())
        await imports.write(system.dice.choice(bad)())
        unchanged = {name for id_, name in system.things.items() if before.get(id_) == name}
        assert known & unchanged <= set(await imports.names())
        if system.dice.random() < 0.3:
            await _converges(imports, system, uids)
    await _converges(imports, system, uids)
