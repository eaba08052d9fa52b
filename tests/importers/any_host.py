"""An organization or group of any code host that changes, and the catalog that it is read into."""

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from factbook.importers import writer
from factbook.importers.snapshot import Snapshot
from factbook.importers.writer import write_snapshot
from tests.fakes import faults
from tests.fakes.fake import Fake
from tests.fakes.faults import Fault
from tests.importers.reading import Imports
from tests.service import Time

HOUR = 3_600_000
FAULTS: Sequence[Fault] = (
    faults.bad_gateway,
    faults.unavailable,
    faults.not_json,
    faults.cut_off,
)


class HostReader(Protocol):
    """Reader of a fake host."""

    time: Time

    async def read(self) -> Snapshot:
        """One reading."""


class AnyHost(ABC):
    """The owner `acme` at a code host; `parts` are those of its repositories and its people.

    `faults` are what its calls of each of the `kinds` may meet.
    """

    parts: ClassVar[tuple[str, str, str]]
    kinds: ClassVar[Sequence[str]]
    faults: ClassVar[Sequence[Fault]]
    reading: HostReader
    fake: Fake

    def __init__(self, imports: Imports, dice: random.Random) -> None:
        self.imports = imports
        self.dice = dice
        self.count = 0

    @property
    @abstractmethod
    def repositories(self) -> list[Any]:
        """Everything that the host has."""

    @abstractmethod
    def add(self) -> None:
        """Add a repository, with the next number."""

    @abstractmethod
    def refs(self) -> list[str]:
        """The references of everything that its repositories bring, sorted."""

    @abstractmethod
    def people(self) -> list[str]:
        """The references of its groups and users, sorted."""

    def change(self) -> None:
        """Add a repository, rename one and remove one."""
        self.add()
        renamed, gone = self.dice.sample(self.repositories, 2)
        renamed.old_names.append(renamed.name)
        renamed.name = f"{renamed.name}-{self.dice.randrange(9)}"
        self.repositories.remove(gone)

    def fail(self) -> None:
        """Let some call fail, once or again and again."""
        fault, times = self.dice.choice(self.faults), self.dice.choice([1, 4, 40])
        kind = self.dice.choice(self.kinds)
        self.fake.fail(kind, fault, after=self.dice.randrange(5), times=times)

    async def read(self) -> None:
        """Read everything, and write it."""
        # The host asked to wait, which is over.
        self.reading.time.advance(HOUR)
        self.imports.now += 1_000
        snapshot = await self.reading.read()
        await write_snapshot(self.imports.target, "fake", snapshot, self.imports.now)

    async def stored(self) -> list[str]:
        """The references that the repositories brought."""
        return await self.imports.refs(f"import/fake/{self.parts[0]}")

    async def stored_people(self) -> list[str]:
        """The references of groups and users."""
        found = [await self.imports.refs(f"import/fake/{part}") for part in self.parts[1:]]
        return sorted(ref for refs in found for ref in refs)

    async def converge(self) -> None:
        """Read without a fault, and remove what is held."""
        self.fake.recover()
        await self.read()
        for part in self.parts:
            if (await self.imports.record(part)).held:
                await writer.apply_removals(self.imports.target, "fake", part, self.imports.actor)
        assert await self.stored() == self.refs()
        assert await self.stored_people() == self.people()


def refs_of(number: int, name: str) -> list[str]:
    """The references that a repository with such a number brings."""
    if number % 9 == 0:
        return [f"location:default/all-{number}", f"component:default/below-{number}"]
    return [f"component:default/{f'file-{number}' if number % 3 == 0 else name}"]
