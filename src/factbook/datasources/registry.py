"""Registry of the builtin, configured and user-defined sources, and the files they read."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import structlog

from factbook.clock import SECOND, Clock
from factbook.datasources import stores
from factbook.datasources.clients import DatabaseMemory
from factbook.datasources.custom import definition as source_definition
from factbook.datasources.custom import sources
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.custom.sources import File, Files, SourceConnection, Unusable
from factbook.datasources.stores import Key, StoredSource, source_store
from factbook.errors import FactbookError, InputError
from factbook.facts import freshness, store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import find_reason
from factbook.facts.schema import NO_ANNOTATION, reason_word
from factbook.integrations.integration import Integration
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import MEANINGS, Missing, Outcome
from factbook.storage import Database

log = structlog.get_logger("factbook.collecting")
# Changes by other processes are seen after this time.
_RELOAD_INTERVAL = SECOND
_PATHS_FACT = "repository.filePaths"
_NOWHERE = Missing(Outcome.NO_ANNOTATION, "no repository at a code host that is configured")
_NOT_YET = Missing(Outcome.TRANSIENT, "the files of the repository were not collected yet")


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

    With both a problem and an integration, the source may not collect; its runs give the reason.

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
        return self._asked_at is not None and 0 <= self._clock() - self._asked_at < _RELOAD_INTERVAL

    async def _ask(self) -> None:
        # Later writes may be missed; they call `forget`.
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
        kept = await stores.open_connections(self._database, self._key)
        self._connections = {**kept, **self.configured}
        stored = await source_store.everything(self._database)
        self._read = await self._read_all(stored)
        self._known = _collect_known(self.fixed, self._read)
        made = self._known.integrations
        self._custom = {id_: made[id_] for id_ in self._known.definitions if id_ in made}
        self._revision = revision

    async def _read_all(self, stored: Sequence[StoredSource]) -> dict[str, _Read]:
        """Read each definition; unchanged ones are reused."""
        found = {}
        for one in stored:
            before = self._read.get(one.id)
            if before is None or not (
                before.stored == one and before.connection == self._asked(before.definition)
            ):
                before = self._read_one(one)
                # A thousand definitions take half a second; other requests run in between.
                await asyncio.sleep(0)
            found[one.id] = before
        return found

    def _asked(
        self, definition: CustomSourceDefinition | None
    ) -> SourceConnection | Unusable | None:
        request = definition and definition.request
        return self._connections.get(request.connection) if request else None

    def _read_one(self, stored: StoredSource) -> _Read:
        definition = _check_stored(stored)
        if isinstance(definition, str):
            return _Read(stored, problem=definition)
        connection = self._asked(definition)
        try:
            integration = sources.build_integration(definition, self._connections, self.files)
        except InputError as error:
            return _Read(stored, definition, None, error.message, connection)
        refusal = sources.connection_refusal(definition, self._connections)
        return _Read(stored, definition, integration, refusal, connection)


def _collect_known(fixed: SourceSnapshot, read: Mapping[str, _Read]) -> SourceSnapshot:
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


def _check_stored(stored: StoredSource) -> CustomSourceDefinition | str:
    """The definition with its stored metadata, or the reason why it is unusable."""
    try:
        definition = source_definition.parse_source_definition(stored.published or stored.draft)
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


class HostFiles:
    """Access of custom sources to the code hosts."""

    def __init__(
        self,
        database: Database,
        integrations: Sequence[Integration],
        client: Callable[[Integration], HttpClient],
        clock: Clock,
    ) -> None:
        self._database = database
        self._hosts = {one.source.id: one for one in integrations if one.read is not None}
        self._client = client
        self._clock = clock

    def locate(self, entity: Mapping[str, Any]) -> tuple[str, str] | Missing:
        """The first code host that the entity points to, and the target there."""
        missing = _NOWHERE
        for id_, host in self._hosts.items():
            found = host.target(entity)
            if isinstance(found, str):
                return id_, found
            if found.outcome is not Outcome.NO_ANNOTATION:
                missing = found
        return missing

    async def read(self, file: File) -> bytes | Missing:
        """The content of a file on the default branch, requested conditionally if cached."""
        host = self._hosts.get(file.host)
        if host is None or host.read is None:
            return _NOWHERE
        memory = DatabaseMemory(self._database, file.host, self._clock())
        answer = await host.read(file.target, file.path, self._client(host), memory)
        if not answer.ok:
            return answer.missing
        await self._database.write(memory.flush)
        return answer.body

    async def paths(self, ref: str) -> list[str] | Missing:
        """The paths that a code host's own source has collected for the entity."""
        latest = await store.list_latest_by_ref(self._database, ref)
        missing = _NOT_YET
        for id_ in self._hosts:
            found = latest.get(id_)
            if found is not None and _PATHS_FACT in found.facts:
                paths: list[str] = found.facts[_PATHS_FACT]
                return paths
            reason = found and find_reason(_PATHS_FACT, found.reasons)
            if reason and reason_word(reason) != NO_ANNOTATION:
                name = reason_word(reason)
                outcomes = (
                    outcome for outcome, meaning in MEANINGS.items() if meaning.reason == name
                )
                missing = Missing(
                    next(outcomes, Outcome.TRANSIENT), "of the files of the repository"
                )
        return missing
