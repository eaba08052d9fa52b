"""Writes of checks and scorecards, which have drafts, versions and tags in the same way."""

import hashlib
from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeVar

import msgspec

from factbook.checks import definition_lock
from factbook.datasources.definitions import DefinitionVersion, Document
from factbook.errors import NotFoundError, PreconditionFailedError
from factbook.storage import Database, Transaction

Documents = dict[str, Any] | None


class StoredDefinition(Protocol):
    """A stored check or scorecard."""

    @property
    def id(self) -> str: ...
    @property
    def draft(self) -> Documents: ...
    @property
    def published(self) -> Documents: ...
    @property
    def pending(self) -> Documents: ...
    @property
    def version(self) -> str: ...
    @property
    def pending_version(self) -> str | None: ...
    @property
    def current(self) -> dict[str, Any]: ...
    @property
    def created_at(self) -> int: ...
    @property
    def created_by(self) -> str: ...
    @property
    def updated_at(self) -> int: ...
    @property
    def updated_by(self) -> str: ...
    @property
    def published_at(self) -> int | None: ...
    @property
    def published_by(self) -> str | None: ...


S = TypeVar("S", bound=StoredDefinition)


class DefinitionStore(Protocol[S]):
    """The store of checks or of scorecards."""

    async def everything(self, database: Database, /) -> list[S]: ...
    async def one(self, database: Database, id_: str, /) -> S | None: ...
    async def versions(self, database: Database, id_: str, /) -> list[DefinitionVersion]: ...
    def read(self, transaction: Transaction, id_: str, /) -> S | None: ...
    def put(self, transaction: Transaction, document: Document, actor: str, now: int, /) -> S: ...
    def publish(self, transaction: Transaction, id_: str, actor: str, now: int, /) -> S: ...
    def delete(self, transaction: Transaction, id_: str, /) -> bool: ...


def tag(stored: StoredDefinition) -> str:
    """A tag of all that its author can change; it stays when a version comes into effect."""
    version = stored.pending_version or stored.version
    parts = (stored.id, version, stored.pending or stored.published, stored.draft)
    return hashlib.blake2b(_encode(parts), digest_size=12).hexdigest()


async def existing(store: DefinitionStore[S], database: Database, id_: str, noun: str) -> S:
    """The definition with this id; raises NotFoundError."""
    found = await store.one(database, id_)
    if found is None:
        raise missing(id_, noun)
    return found


def replacement(
    store: DefinitionStore[S],
    document: Document,
    actor: str,
    now: int,
    *,
    tags: Collection[str] | None,
    publish: bool,
) -> Callable[[Transaction], S]:
    """The work that makes the document the draft of its definition, and may publish it at once.

    It raises PreconditionFailedError unless the definition has one of the tags; None is any.
    """

    def work(transaction: Transaction) -> S:
        if publish:
            definition_lock.take(transaction)
        check_tag(store.read(transaction, document["id"]), tags)
        stored = store.put(transaction, document, actor, now)
        return store.publish(transaction, stored.id, actor, now) if publish else stored

    return work


def publication(
    store: DefinitionStore[S], id_: str, actor: str, now: int, tags: Collection[str] | None
) -> Callable[[Transaction], S]:
    """The work that publishes a draft; without a draft nothing changes."""

    def work(transaction: Transaction) -> S:
        definition_lock.take(transaction)
        check_tag(store.read(transaction, id_), tags)
        return store.publish(transaction, id_, actor, now)

    return work


def removal(
    store: DefinitionStore[S], id_: str, noun: str, tags: Collection[str] | None
) -> Callable[[Transaction], None]:
    """The work that deletes a definition; it raises NotFoundError if there is none."""

    def work(transaction: Transaction) -> None:
        definition_lock.take(transaction)
        check_tag(store.read(transaction, id_), tags)
        if not store.delete(transaction, id_):
            raise missing(id_, noun)

    return work


def check_tag(stored: StoredDefinition | None, tags: Collection[str] | None) -> None:
    """Raise PreconditionFailedError unless the definition has one of the tags; `*` is any."""
    if tags is None:
        return
    if stored is None or ("*" not in tags and tag(stored) not in tags):
        raise PreconditionFailedError("It was changed since; read it again, and build on that.")


def missing(id_: str, noun: str) -> NotFoundError:
    """The error for an unknown check or scorecard."""
    return NotFoundError(f'There is no {noun} "{id_}".')


_encode = msgspec.json.Encoder(order="deterministic").encode
