"""Writes of data sources by members of the groups that own them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from factbook.audit.trail import About, AuditEntry
from factbook.auth.permissions import SOURCE_WRITE, TITLES
from factbook.catalog.store import membership
from factbook.catalog.store.locks import WriteLocks
from factbook.datasources import connection_store
from factbook.datasources.custom import SourceConnection
from factbook.datasources.source_store import StoredSource, source_store
from factbook.definitions.owners import owner_of, owners_of
from factbook.errors import InvalidItemsError, NotAllowedError, problem
from factbook.storage import Database, Transaction, Write

T = TypeVar("T")

_CONNECTION: Final = "handlerDefinition.config.connection"


class OwnedSource:
    """A data source that groups of the actor own, as it has to stay.

    To change it they have to own what is published and what is drafted; with another permission
    than SOURCE_WRITE, such as that to run it, what is in effect. `configured` are the connections
    of the settings: what is written asks no connection that is not shared with its owner.
    """

    def __init__(
        self,
        source_id: str,
        actor: str,
        configured: Mapping[str, SourceConnection],
        needed: str = SOURCE_WRITE,
    ) -> None:
        self._id = source_id
        self._actor = actor
        self._configured = configured
        self._needed = needed
        self._groups: frozenset[str] = frozenset()
        self._before: StoredSource | None = None
        self._group = ""

    def guarding(self, write: Write) -> Write:
        """The runner, which raises NotAllowedError for a source that is or would be of others.

        It raises InvalidItemsError for a connection that the owner may not use.
        """

        def guarded(function: Callable[[Transaction], T], /) -> Awaitable[T]:
            held = WriteLocks({}, self)

            def work(transaction: Transaction) -> T:
                held.begin(transaction)
                result = function(transaction)
                held.end(transaction)
                return result

            return write(work)

        return guarded

    def begin(self, transaction: Transaction, held: WriteLocks) -> None:
        """Look whose the source is, and keep it and the groups of the actor as they are."""
        self._groups = membership.kept_groups(transaction, held, self._actor)
        self._before = self._check(transaction)

    def end(self, transaction: Transaction) -> str:
        """Look again when it is written; the group that allows it."""
        stored = self._check(transaction)
        # Whatever is asked by now, it can be deleted.
        if stored is not None and stored != self._before and self._needed == SOURCE_WRITE:
            self._check_connection(transaction, stored)
        return f"group {self._group}"

    def told(self, about: AuditEntry | About) -> About:
        """The entry of the audit, with the group that allowed the write."""

        def entry(result: Any) -> AuditEntry | None:
            found = about if isinstance(about, AuditEntry) else about(result)
            return found and found._replace(grant=f"group {self._group}")

        return entry

    def _check(self, transaction: Transaction) -> StoredSource | None:
        """The source, locked, so that nobody hands it over meanwhile."""
        stored = source_store.read(transaction, self._id)
        if stored is None:
            return None
        found = _owners(stored, self._needed)
        if not found <= self._groups:
            raise _of_others(self._needed)
        self._group = min(found)
        return stored

    def _check_connection(self, transaction: Transaction, stored: StoredSource) -> None:
        """Raise InvalidItemsError if the owner may not use the connection of what is written."""
        name, owner = _connection(stored.written), owner_of(stored.written)
        if name is None:
            return
        given = self._configured.get(name)
        if given is not None:
            shared = given.shared_with
        else:
            shared = connection_store.owners(transaction, name)
        if owner not in shared:
            told = f"is not shared with {owner}; an operator can share it"
            raise InvalidItemsError([problem(_CONNECTION, told)])


async def is_own(
    database: Database, stored: StoredSource, actor: str, needed: str = SOURCE_WRITE
) -> bool:
    """True if groups of the actor own what they need to own, as above."""
    return _owners(stored, needed) <= await membership.read_groups(database, actor)


async def check_own(database: Database, stored: StoredSource, actor: str) -> None:
    """Raise NotAllowedError unless groups of the actor own the source, published and drafted."""
    if not await is_own(database, stored, actor):
        raise _of_others(SOURCE_WRITE)


async def check_trial(database: Database, source_id: str, owner: str | None, actor: str) -> None:
    """Raise NotAllowedError for a trial of a definition that is not of a group of the actor.

    So is one under the id of a source of others.
    """
    stored = await source_store.one(database, source_id)
    if stored is not None:
        await check_own(database, stored, actor)
    if owner not in await membership.read_groups(database, actor):
        raise _of_others(SOURCE_WRITE)


def _owners(stored: StoredSource, needed: str) -> frozenset[str]:
    if needed == SOURCE_WRITE:
        return owners_of(stored.published, stored.draft)
    return owners_of(stored.current)


def _connection(document: Mapping[str, Any]) -> str | None:
    handler = document["handlerDefinition"]
    return handler["config"]["connection"] if handler["type"] == "http" else None


def _of_others(needed: str) -> NotAllowedError:
    versions = ", published and drafted" if needed == SOURCE_WRITE else ""
    return NotAllowedError(
        f"A group of yours has to own this data source{versions}; for others it needs the "
        f'permission "{TITLES[needed]}" ({needed}).',
        missing=(needed,),
    )
