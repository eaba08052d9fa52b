"""Registry of the current sources: builtin, configured and user-defined."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import structlog

from factbook.clock import SECOND, Clock
from factbook.datasources import connection_store, custom
from factbook.datasources.connection_store import Key
from factbook.datasources.custom import CustomSourceDefinition, Files, SourceConnection, Unusable
from factbook.datasources.source_store import StoredSource, source_store
from factbook.errors import FactbookError, InputError
from factbook.facts import freshness
from factbook.facts.datasource import DataSource
from factbook.integrations.integration import Integration
from factbook.storage import Database

log = structlog.get_logger("factbook.collecting")

# What another process changed is known here after so long.
_EVERY = SECOND


class SourceSnapshot(NamedTuple):
    """The sources by id, their integrations if collected, and the definitions of custom ones.

    `problems` has the reason for each custom source that cannot be collected as defined.
    """

    sources: dict[str, DataSource]
    integrations: dict[str, Integration]
    definitions: dict[str, CustomSourceDefinition]
    problems: dict[str, str]

    @property
    def pushed(self) -> list[str]:
        """The ids of the sources that receive pushed facts."""
        return [id_ for id_, definition in self.definitions.items() if definition.type == "push"]


class _Read(NamedTuple):
    """Result of reading a definition; `problem` is the reason why it is unusable or not collected.

    One with an integration as well is not allowed to collect, as each of its runs tells.

    `connection` is the connection it used at that time.
    """

    stored: StoredSource
    definition: CustomSourceDefinition | None = None
    integration: Integration | None = None
    problem: str | None = None
    connection: SourceConnection | Unusable | None = None


class Registry:
    """Registry of every source; user definitions are reloaded from the database on change."""

    def __init__(
        self,
        database: Database,
        sources: Sequence[DataSource],
        integrations: Sequence[Integration],
        connections: Mapping[str, SourceConnection],
        files: Files,
        clock: Clock,
        key: Key,
    ) -> None:
        """`sources` are those without an integration, `connections` those of the settings.

        They stay readable as `fixed` and `configured`, and `files` is the access of custom sources
        to files. `key` returns the key that encrypts the secrets of stored connections.
        """
        self._database = database
        self.configured = connections
        self._connections: Mapping[str, SourceConnection | Unusable] = connections
        self._key = key
        self.files = files
        self._clock = clock
        brought = {one.source.id: one for one in integrations}
        fixed = {one.id: one for one in sources} | {id_: one.source for id_, one in brought.items()}
        self.fixed = SourceSnapshot(fixed, brought, {}, {})
        self._known = self.fixed
        self._custom: Mapping[str, Integration] = {}
        self._read: dict[str, _Read] = {}
        self._revision: int | None = None
        self._asked_at: int | None = None
        self._asking = asyncio.Lock()

    async def custom(self) -> Mapping[str, Integration]:
        """The integrations of user-defined sources: the same mapping until one of them changes."""
        await self.current()
        return self._custom

    @property
    def connections(self) -> Mapping[str, SourceConnection | Unusable]:
        """The connections for custom sources by name, as last read; those of the settings win."""
        return self._connections

    async def current(self) -> SourceSnapshot:
        """The current sources; a change by another process is seen within a second."""
        if self._asking.locked() or not self._is_recent():
            async with self._asking:
                if not self._is_recent():
                    await self._ask()
        return self._known

    async def latest(self) -> SourceSnapshot:
        """The sources at this moment, including changes by other processes."""
        self.forget()
        return await self.current()

    def problem(self, stored: StoredSource) -> str | None:
        """The reason why a stored source cannot be collected; None if it can."""
        return self._read_one(stored).problem

    def forget(self) -> None:
        """Reload on the next call, after a write."""
        self._asked_at = None

    def _is_recent(self) -> bool:
        return self._asked_at is not None and 0 <= self._clock() - self._asked_at < _EVERY

    async def _ask(self) -> None:
        # What is written from here on may be missed, and `forget` then tells.
        self._asked_at = now = self._clock()
        try:
            await self._ask_definitions()
            sources = self._known.sources.values()
            await freshness.freshness_of(self._database).refresh(self._database, sources, now)
        except BaseException:
            self._asked_at = None
            raise

    async def _ask_definitions(self) -> None:
        revision = await source_store.revision(self._database)
        if revision == self._revision:
            return
        kept = await connection_store.usable(self._database, self._key)
        self._connections = {**kept, **self.configured}
        stored = await source_store.everything(self._database)
        self._read = await self._read_all(stored)
        self._known = _known(self.fixed, self._read)
        made = self._known.integrations
        self._custom = {id_: made[id_] for id_ in self._known.definitions if id_ in made}
        self._revision = revision

    async def _read_all(self, stored: Sequence[StoredSource]) -> dict[str, _Read]:
        """Read each definition; unchanged ones are reused."""
        found = {}
        for one in stored:
            before = self._read.get(one.id)
            if before is None or not self._holds(before, one):
                before = self._read_one(one)
                # A thousand definitions take half a second, in which others are answered.
                await asyncio.sleep(0)
            found[one.id] = before
        return found

    def _holds(self, read: _Read, stored: StoredSource) -> bool:
        """Return true if an earlier result is still valid."""
        return read.stored == stored and read.connection == self._asked(read.definition)

    def _asked(
        self, definition: CustomSourceDefinition | None
    ) -> SourceConnection | Unusable | None:
        request = definition and definition.request
        return self._connections.get(request.connection) if request else None

    def _read_one(self, stored: StoredSource) -> _Read:
        definition = _parsed(stored)
        if isinstance(definition, str):
            return _Read(stored, problem=definition)
        connection = self._asked(definition)
        try:
            integration = custom.integration(definition, self._connections, self.files)
        except InputError as error:
            return _Read(stored, definition, None, error.message, connection)
        refusal = custom.refusal_of(definition, self._connections)
        return _Read(stored, definition, integration, refusal, connection)


def _known(fixed: SourceSnapshot, read: Mapping[str, _Read]) -> SourceSnapshot:
    known = SourceSnapshot(dict(fixed.sources), dict(fixed.integrations), {}, {})
    for id_, one in read.items():
        if one.definition is None:
            known.problems[id_] = one.problem or ""
        elif id_ not in fixed.sources:
            known.sources[id_] = one.definition.source
            known.definitions[id_] = one.definition
            if one.integration is not None:
                known.integrations[id_] = one.integration
            if one.problem is not None:
                known.problems[id_] = one.problem
    return known


def _parsed(stored: StoredSource) -> CustomSourceDefinition | str:
    """A definition with the service's metadata, or the reason why it has become unusable."""
    try:
        definition = custom.parse(stored.published or stored.draft)
    except FactbookError as error:
        log.error("definition.unusable", source=stored.id, reason=error.message)
        return error.message
    source = replace(
        definition.source,
        version=stored.version,
        draft=stored.published is None,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
    )
    return replace(definition, source=source)
