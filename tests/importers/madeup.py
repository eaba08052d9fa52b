"""A system that tests make up, its importer, and processes that run it by a clock of theirs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from factbook.clock import HOUR
from factbook.importers import records
from factbook.importers.importer import Access, Importer, Show
from factbook.importers.records import ImportRun
from factbook.importers.registry import ImporterRegistry
from factbook.importers.runner import ImportRunner
from factbook.importers.snapshot import Snapshot, SnapshotPart
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.settings import Settings
from factbook.storage import Database
from tests.collection.madeup import MadeUpClient
from tests.importers.reading import IMPORTER, Imports, item, part
from tests.service import Service, Time

ID = IMPORTER


class MadeUpSystem:
    """System that an importer reads; `fault` is raised, or called before it answers."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.readings = 0
        self.fault: Exception | Callable[[], Awaitable[object]] | None = None
        self.parts: list[SnapshotPart] | None = None
        self.remembered: list[bytes | None] = []

    async def read(self, client: HttpClient, memory: Memory, now: int, show: Show) -> Snapshot:
        """The parts, by default one with a component for each name."""
        self.readings += 1
        assert isinstance(client, MadeUpClient)
        client.counted.calls += 1
        self.remembered.append(await memory.get("etag"))
        await memory.put("etag", str(self.readings).encode())
        show("Reading")
        names = list(self.names)
        if isinstance(self.fault, Exception):
            raise self.fault
        if self.fault is not None:
            await self.fault()
        given = [part(*map(item, names))] if self.parts is None else self.parts
        return Snapshot(tuple(given))

    def importer(self, id_: str = ID, every: int | None = HOUR) -> Importer:
        """Its importer."""
        integration = Access().integration(id_, id_)
        given: dict[str, Any] = {"id": id_, "kind": "madeup", "title": id_, "every": every}
        return Importer(integration=integration, read=self.read, **given)


def registry(database: Database, time: Time, *importers: Importer) -> ImporterRegistry:
    """A registry of these importers, and of stored ones."""
    return ImporterRegistry(database, importers, {}, time, lambda: b"a key of tests" * 5)


class ImportingProcess:
    """A process that runs importers, as it says itself the only one."""

    def __init__(
        self, database: Database, time: Time, *importers: Importer, name: str = "a"
    ) -> None:
        self.client = MadeUpClient()
        known = registry(database, time, *importers)
        self.runner = ImportRunner(
            database, Settings(), known, lambda integration: self.client, time, name
        )

    async def work(self) -> None:
        """Do what is due."""
        await self.runner.drain()


def known_to(service: Service, *importers: Importer) -> None:
    """Let a service know importers, by default that of a made-up system."""
    known = importers or (MadeUpSystem("a").importer(),)
    service.state.importers = registry(service.state.database, service.time, *known)


class ImportWorld:
    """A catalog, a made-up system, and a process that imports it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.time = Time()
        self.system = MadeUpSystem("a", "b")
        self.imports = Imports(database)
        self.process = self.another("a")

    def another(self, name: str, every: int | None = HOUR) -> ImportingProcess:
        """A process with this name."""
        importer = self.system.importer(every=every)
        return ImportingProcess(self.database, self.time, importer, name=name)

    async def ask(self) -> ImportRun:
        """Ask for a run."""
        return await self.database.write(lambda tx: records.request_run(tx, ID, self.time()))

    async def runs(self) -> list[ImportRun]:
        """The runs, newest first."""
        return await records.list_recent_import_runs(self.database, ID)

    async def last(self) -> ImportRun:
        """The last run."""
        return (await self.runs())[0]

    async def names(self) -> list[str]:
        """The names in the catalog."""
        return await self.imports.names()

    def held(self) -> tuple[asyncio.Event, asyncio.Event]:
        """Keep the next answers back: when it is read, and when it is to answer."""
        read, answer = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            read.set()
            await answer.wait()

        self.system.fault = wait
        return read, answer
