"""What the measures share: the options, the catalog, and services that are made once."""

import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Self

import msgspec

from bench import catalog
from bench.catalog import Entity, Key
from bench.databases import Database, Databases
from bench.processes import Cores
from bench.service import CATALOG, COMMAND, Factbook, factbook

_SAMPLE = 500


class Options(msgspec.Struct, frozen=True):
    """How much to measure; large sets have ten times the entities, and are pushed less often."""

    rounds: int = 5
    entities: int = 10_000
    seconds: float = 3.0
    repositories: int = 1_000
    sources: int = 1_000
    history: int = 10_000_000
    minutes: float = 30.0  # of steady load
    sizes: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)  # catalogs that are compared
    compared: int = 10_000  # the one of them that the largest is measured by
    kept: Path | None = None  # the folder of a PostgreSQL that stays there with these catalogs
    pictures: Path | None = None  # the folder that pictures are written to

    @property
    def large(self) -> int:
        return 10 * self.entities

    @property
    def large_rounds(self) -> int:
        return min(self.rounds, 3)


class Proof(msgspec.Struct, frozen=True):
    """What the entities are like, as averages over a sample that was read back."""

    entities: int
    least_bytes: int
    mean_bytes: float
    search_rows: float


class Run:
    """One run of the benchmarks, and what it holds open."""

    def __init__(self, options: Options, cores: Cores, stack: ExitStack, command: Path) -> None:
        self.options = options
        self._command = command
        self.cores = cores
        self.proof: Proof | None = None
        self._stack = stack
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        self.databases = Databases(cores.server, stack, options.kept)
        self.entities: list[Entity] = list(catalog.entities(options.entities))
        self.body = catalog.body(self.entities)
        self.keys: list[Key] = [catalog.key(entity) for entity in self.entities]
        self._filled: dict[str, Factbook] = {}
        self._large: dict[str, Factbook] = {}
        self._began = time.monotonic()

    @classmethod
    @contextmanager
    def start(cls, options: Options, cores: Cores, command: Path = COMMAND) -> Iterator[Self]:
        """A run of services of this command; all that it started is stopped at its end."""
        with ExitStack() as stack:
            yield cls(options, cores, stack, command)

    @property
    def rounds(self) -> range:
        return range(self.options.rounds)

    def say(self, text: str) -> None:
        """Tell how far it is."""
        print(f"{time.monotonic() - self._began:6.1f} s  {text}", file=sys.stderr, flush=True)

    @contextmanager
    def fresh(self, dialect: str) -> Iterator[Factbook]:
        """A service on a new database that holds the teams and systems alone."""
        with self.databases.fresh(dialect) as database, self.serving(database) as service:
            service.push("organisation", catalog.body(catalog.organisation()))
            yield service

    @contextmanager
    def serving(
        self,
        database: Database,
        token: str | None = None,
        further: Mapping[str, str] = MappingProxyType({}),
    ) -> Iterator[Factbook]:
        """A service on this database; `further` are variables of its own."""
        core = self.cores.server
        with factbook(database, self.folder, core, token, further, self._command) as service:
            yield service

    def filled(self, dialect: str) -> Factbook:
        """A service with the whole catalog, made once and kept until the end of the run."""
        service = self._filled.get(dialect)
        if service is None:
            self.say(f"a catalog of {len(self.entities):,} entities on {dialect}")
            service = self._filled[dialect] = self._stack.enter_context(self.fresh(dialect))
            service.push("bench", self.body, added=len(self.entities))
            service.database.settle()
            self.proof = self.proof or self._prove(service)
        return service

    def large(self, dialect: str) -> Factbook:
        """A service with ten times the catalog, made once and kept until the end of the run."""
        service = self._large.get(dialect)
        if service is None:
            self.say(f"a catalog of {self.options.large:,} entities on {dialect}")
            service = self._large[dialect] = self._stack.enter_context(self.fresh(dialect))
            entities = iter(catalog.entities(self.options.large))
            while items := list(islice(entities, self.options.entities)):
                name = f"bench-{catalog.key(items[0]).name}"
                service.push(name, catalog.body(items), added=len(items))
            service.database.settle()
        return service

    def _prove(self, service: Factbook) -> Proof:
        chosen = random.Random(1).choices(self.keys, k=_SAMPLE)
        rows = [len(catalog.search_rows(service.client.get(by_name(key)))) for key in chosen]
        sizes = [len(msgspec.json.encode(entity)) for entity in self.entities]
        mean = sum(sizes) / len(sizes)
        return Proof(len(self.entities), min(sizes), mean, sum(rows) / len(rows))


def by_name(key: Key) -> str:
    """The path of an entity."""
    return f"{CATALOG}/by-name/{key.kind}/default/{key.name}"
