"""Which sources there are at this moment: builtin, configured, and those that users defined."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import structlog

from factbook.clock import SECOND, Clock
from factbook.errors import FactbookError, InputError
from factbook.facts import definitions
from factbook.facts.datasource import DataSource
from factbook.facts.definitions import Stored
from factbook.sources import custom
from factbook.sources.custom import Connection, Definition, Files
from factbook.sources.integration import Integration
from factbook.storage import Database

log = structlog.get_logger("factbook.collecting")

# What another process changed is known here after so long.
_EVERY = SECOND


class Known(NamedTuple):
    """The sources by id, what collects those that are collected, and how the custom ones are made.

    `problems` says why a custom source cannot be collected as it is defined.
    """

    sources: dict[str, DataSource]
    integrations: dict[str, Integration]
    definitions: dict[str, Definition]
    problems: dict[str, str]


class Registry:
    """Knows every source; what users define is read from the database when it has changed."""

    def __init__(
        self,
        database: Database,
        sources: Sequence[DataSource],
        integrations: Sequence[Integration],
        connections: Mapping[str, Connection],
        files: Files,
        clock: Clock,
    ) -> None:
        """`sources` are those that no integration brings."""
        self._database = database
        self._connections = connections
        self._files = files
        self._clock = clock
        brought = {one.source.id: one for one in integrations}
        fixed = {one.id: one for one in sources} | {id_: one.source for id_, one in brought.items()}
        self._fixed = Known(fixed, brought, {}, {})
        self._known = self._fixed
        self._parsed: dict[str, tuple[Stored, Definition | str]] = {}
        self._revision: int | None = None
        self._asked_at: int | None = None

    async def custom(self) -> Mapping[str, Integration]:
        """What collects the sources that users defined."""
        known = await self.current()
        return {
            id_: known.integrations[id_]
            for id_ in known.definitions.keys() & known.integrations.keys()
        }

    @property
    def fixed(self) -> Known:
        """Those that no user defined."""
        return self._fixed

    @property
    def connections(self) -> Mapping[str, Connection]:
        """What custom sources may ask, by name."""
        return self._connections

    @property
    def files(self) -> Files:
        """Where custom sources get files from."""
        return self._files

    async def current(self) -> Known:
        """What is known now; a change by another process is seen within a second."""
        now = self._clock()
        if self._asked_at is None or not 0 <= now - self._asked_at < _EVERY:
            revision = await definitions.revision(self._database)
            if revision != self._revision:
                self._known = self._read(await definitions.everything(self._database))
                self._revision = revision
            self._asked_at = now
        return self._known

    def forget(self) -> None:
        """Look anew at the next question: something was written."""
        self._asked_at = None

    def _read(self, stored: Sequence[Stored]) -> Known:
        known = Known(dict(self._fixed.sources), dict(self._fixed.integrations), {}, {})
        # What has not changed is not read again.
        self._parsed = {one.id: self._read_one(one) for one in stored}
        for id_, (_, definition) in self._parsed.items():
            if isinstance(definition, str):
                known.problems[id_] = definition
            elif id_ not in self._fixed.sources:
                self._add(known, definition)
        return known

    def _read_one(self, stored: Stored) -> tuple[Stored, Definition | str]:
        before = self._parsed.get(stored.id)
        return before if before and before[0] == stored else (stored, _parsed(stored))

    def _add(self, known: Known, definition: Definition) -> None:
        id_ = definition.source.id
        known.sources[id_] = definition.source
        known.definitions[id_] = definition
        try:
            integration = custom.integration(definition, self._connections, self._files)
        except InputError as error:
            known.problems[id_] = error.message
            return
        if integration is not None:
            known.integrations[id_] = integration


def _parsed(stored: Stored) -> Definition | str:
    """A definition with what the service knows of it, or why it cannot be used any more."""
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
