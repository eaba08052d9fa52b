"""Writes of data sources by members of the groups that own them."""

from collections.abc import Mapping
from typing import Any, Final

from factbook.auth.permissions import SOURCE_WRITE
from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.store import membership
from factbook.datasources import connection_store
from factbook.datasources.custom import SourceConnection
from factbook.datasources.source_store import StoredSource, source_store
from factbook.definitions.owned_definition import VERSIONS, OwnedDefinition, of_others
from factbook.definitions.owners import owner_of, owners_of
from factbook.errors import InvalidItemsError, NotAllowedError, problem
from factbook.storage import Database, Transaction

_CONNECTION: Final = "handlerDefinition.config.connection"


class OwnedSource(OwnedDefinition[StoredSource]):
    """A data source that groups of the actor own, as it has to stay.

    To change it they have to own what is published and what is drafted; with another permission
    than SOURCE_WRITE, such as that to run it, what is in effect. `configured` are the connections
    of the settings: what is written asks no connection that is not shared with its owner.
    """

    def __init__(
        self,
        source_id: str,
        actor: str,
        trust: PeopleTrust,
        configured: Mapping[str, SourceConnection],
        needed: str = SOURCE_WRITE,
    ) -> None:
        super().__init__(source_store, source_id, actor, needed, trust)
        self._configured = configured

    def owners(self, stored: StoredSource) -> frozenset[str]:
        return _owners(stored, self._needed)

    def refusal(self) -> NotAllowedError:
        return _of_others(self._needed)

    def verify(
        self, transaction: Transaction, before: StoredSource | None, after: StoredSource | None
    ) -> None:
        """Raise InvalidItemsError for a connection that the owner may not use."""
        # Whatever is asked by now, it can be deleted.
        if after is not None and after != before and self._needed == SOURCE_WRITE:
            self._check_connection(transaction, after)

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
    database: Database,
    stored: StoredSource,
    actor: str,
    trust: PeopleTrust,
    needed: str = SOURCE_WRITE,
) -> bool:
    """True if groups of the actor own what they need to own, as above."""
    return _owners(stored, needed) <= await membership.read_groups(database, actor, trust)


async def check_own(
    database: Database, stored: StoredSource, actor: str, trust: PeopleTrust
) -> None:
    """Raise NotAllowedError unless groups of the actor own the source, published and drafted."""
    if not await is_own(database, stored, actor, trust):
        raise _of_others(SOURCE_WRITE)


async def check_trial(
    database: Database, source_id: str, owner: str | None, actor: str, trust: PeopleTrust
) -> None:
    """Raise NotAllowedError for a trial of a definition that is not of a group of the actor.

    So is one under the id of a source of others.
    """
    stored = await source_store.one(database, source_id)
    if stored is not None:
        await check_own(database, stored, actor, trust)
    if owner not in await membership.read_groups(database, actor, trust):
        raise _of_others(SOURCE_WRITE)


def _owners(stored: StoredSource, needed: str) -> frozenset[str]:
    if needed == SOURCE_WRITE:
        return owners_of(stored.published, stored.draft)
    return owners_of(stored.current)


def _connection(document: Mapping[str, Any]) -> str | None:
    handler = document["handlerDefinition"]
    return handler["config"]["connection"] if handler["type"] == "http" else None


def _of_others(needed: str) -> NotAllowedError:
    versions = VERSIONS if needed == SOURCE_WRITE else ""
    return of_others(source_store.noun, needed, versions)
