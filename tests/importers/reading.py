"""Snapshots as tests make them, and what the catalog holds after they are written."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from factbook.catalog.sets import PushRules
from factbook.catalog.store.stored_sets import Actor
from factbook.importers import records
from factbook.importers.records import ImportPartRecord
from factbook.importers.snapshot import ImportedItem, ReadingProblem, Snapshot, SnapshotPart
from factbook.importers.writer import ImportTarget, PartResult, write_snapshot
from factbook.settings import Settings
from factbook.storage import Database, Transaction
from tests.service import NOON, component

T = TypeVar("T")

IMPORTER, PART = "fake", "all"
SET = f"import/{IMPORTER}/{PART}"


def item(name: str, *, external_id: str = "", origin: str = "", **more: Any) -> ImportedItem:
    """A component read from an origin of its own, unless another is named."""
    given = {"entity": component(name), **more}
    return ImportedItem(origin=origin or f"repository {name}", external_id=external_id, **given)


def part(
    *items: ImportedItem,
    key: str = PART,
    complete: bool = True,
    problems: Sequence[ReadingProblem] = (),
    unread: Iterable[str] = (),
    rights: Iterable[str] = (),
) -> SnapshotPart:
    """A part, complete unless said otherwise."""
    sets = frozenset(unread), frozenset(rights)
    return SnapshotPart(key, complete, items, tuple(problems), *sets)


class Imports:
    """A catalog that one importer's readings are written into."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = NOON
        rules = PushRules.of(Settings())
        self.target = ImportTarget(database, rules, 50, database.write)

    @property
    def actor(self) -> Actor:
        """Somebody who decides."""
        return Actor("user:default/decider", self.now)

    def first(self, meanwhile: Callable[[], Awaitable[object]]) -> ImportTarget:
        """A target whose first transaction begins when something else has been written."""
        waiting = [meanwhile]

        async def write(function: Callable[[Transaction], T], /) -> T:
            while waiting:
                await waiting.pop()()
            return await self.database.write(function)

        return self.target._replace(write=write)

    async def write(self, *parts: SnapshotPart, dry_run: bool = False) -> PartResult:
        """Write one reading; the result of its first part."""
        return (await self.write_all(*parts, dry_run=dry_run))[0]

    async def write_all(self, *parts: SnapshotPart, dry_run: bool = False) -> list[PartResult]:
        self.now += 1_000
        snapshot = Snapshot(parts)
        return await write_snapshot(self.target, IMPORTER, snapshot, self.now, dry_run=dry_run)

    async def write_as(self, importer: str, *parts: SnapshotPart) -> list[PartResult]:
        """Write one reading of another importer."""
        self.now += 1_000
        return await write_snapshot(self.target, importer, Snapshot(parts), self.now)

    async def refs(self, set_name: str | None = SET) -> list[str]:
        """The references of a set, sorted."""
        rows = await self.database.all(
            "SELECT e.ref FROM entities e JOIN sets s ON s.id = e.set_id WHERE s.name = ?",
            (set_name,),
        )
        return sorted(row[0] for row in rows)

    async def names(self) -> list[str]:
        """The names in the importer's set, sorted."""
        return [ref.partition("/")[2] for ref in await self.refs()]

    async def uid(self, name: str) -> str | None:
        """The id of a component."""
        ref = f"component:default/{name}"
        row = await self.database.one("SELECT uid FROM entities WHERE ref = ?", (ref,))
        return row[0] if row else None

    async def revision(self) -> int:
        row = await self.database.one("SELECT revision FROM sets WHERE name = ?", (SET,))
        return row[0] if row else 0

    async def record(self, key: str = PART) -> ImportPartRecord:
        found = await records.get_part_record(self.database, IMPORTER, key)
        assert found is not None
        return found
