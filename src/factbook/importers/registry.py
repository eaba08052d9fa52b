"""Registry of the current importers: of the settings, and made in the browser."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import structlog

from factbook.clock import SECOND, Clock
from factbook.errors import ConfigurationError, no_such
from factbook.importers import configuration, importer_store
from factbook.importers.configuration import Tables
from factbook.importers.importer import Importer
from factbook.importers.importer_store import Make, StoredImporter
from factbook.storage import Database, Row

log = structlog.get_logger("factbook.importing")

# What another process changed is known here after so long.
_EVERY = SECOND


class ImporterRegistry:
    """Registry of every importer, by its id; stored ones are reloaded when one has changed."""

    def __init__(
        self,
        database: Database,
        configured: Sequence[Importer],
        accounts: Tables,
        clock: Clock,
        key: Callable[[], bytes],
    ) -> None:
        """`accounts` are the tables of integrations in the settings.

        `key` returns the key that encrypts the secrets of stored importers.
        """
        self._database = database
        self.configured: Mapping[str, Importer] = {one.id: one for one in configured}
        self.accounts = accounts
        self._clock = clock
        self._key = key
        self._known = self.configured
        self._stored: Mapping[str, StoredImporter] = {}
        self._problems: Mapping[str, str] = {}
        self._revision: int | None = None
        self._asked_at: int | None = None
        self._asking = asyncio.Lock()

    async def current(self) -> Mapping[str, Importer]:
        """The current importers: the same mapping until one of them changes."""
        async with self._asking:
            if self._asked_at is None or not 0 <= self._clock() - self._asked_at < _EVERY:
                await self._ask()
        return self._known

    async def latest(self) -> Mapping[str, Importer]:
        """The importers at this moment, including changes by other processes."""
        self.forget()
        return await self.current()

    @property
    def stored(self) -> Mapping[str, StoredImporter]:
        """The stored importers, as last read; those of the settings win."""
        return self._stored

    @property
    def problems(self) -> Mapping[str, str]:
        """The reason for each stored importer that cannot be used, as last read."""
        return self._problems

    def forget(self) -> None:
        """Reload on the next call, after a write."""
        self._asked_at = None

    async def one(self, id_: str) -> Importer:
        """The importer with this id; raises NotFoundError."""
        known = await self.current()
        found = known.get(id_)
        if found is None:
            raise no_such("importer", id_, known)
        return found

    def maker(self, kind: str, name: str, edition: str = "") -> Make:
        """Maker of the importer of a kind and a name from its options."""
        return partial(_made, kind, name, self.accounts, self._clock, edition)

    async def _ask(self) -> None:
        # What is written from here on may be missed, and `forget` then tells.
        self._asked_at = self._clock()
        try:
            revision = await importer_store.revision(self._database)
            if revision == self._revision:
                return
            rows = await importer_store.rows(self._database)
        except BaseException:
            self._asked_at = None
            raise
        self._read([row for row in rows if row[0] not in self.configured])
        self._revision = revision

    def _read(self, rows: Sequence[Row]) -> None:
        found, problems = dict[str, Importer](), dict[str, str]()
        self._stored = {row[0]: importer_store.stored(row) for row in rows}
        for id_, stored in self._stored.items():
            [row] = (row for row in rows if row[0] == id_)
            make = self.maker(stored.kind, stored.name, str(stored.updated_at))
            try:
                found[id_] = importer_store.opened(row, self._key(), make)
            except ConfigurationError as error:
                log.error("importer.unusable", importer=id_, reason=error.message)
                problems[id_] = error.message
        self._known, self._problems = {**found, **self.configured}, problems


def _made(
    kind: str,
    name: str,
    accounts: Tables,
    clock: Clock,
    edition: str,
    options: Mapping[str, Any],
) -> Importer:
    return configuration.importer(kind, name, options, accounts, clock=clock, edition=edition)
