"""Repository files, read through the configured code hosts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from factbook.clock import Clock
from factbook.datasources.custom import File
from factbook.datasources.memory import DatabaseMemory
from factbook.facts import store
from factbook.facts.freshness import find_reason
from factbook.facts.schema import NO_ANNOTATION, reason_word
from factbook.integrations.integration import Integration
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import MEANINGS, Missing, Outcome
from factbook.storage import Database

_PATHS = "repository.filePaths"
_NOWHERE = Missing(Outcome.NO_ANNOTATION, "no repository at a code host that is configured")
_NOT_YET = Missing(Outcome.TRANSIENT, "the files of the repository were not collected yet")


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
            if found is not None and _PATHS in found.facts:
                paths: list[str] = found.facts[_PATHS]
                return paths
            reason = found and find_reason(_PATHS, found.reasons)
            if reason and reason_word(reason) != NO_ANNOTATION:
                missing = _missing(reason)
        return missing


def _missing(reason: str) -> Missing:
    """The outcome encoded in a stored reason."""
    name = reason_word(reason)
    outcomes = (outcome for outcome, meaning in MEANINGS.items() if meaning.reason == name)
    return Missing(next(outcomes, Outcome.TRANSIENT), "of the files of the repository")
