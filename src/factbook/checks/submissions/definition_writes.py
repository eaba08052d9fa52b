"""Writes of checks and scorecards, which have drafts, versions and tags in the same way."""

import hashlib
from collections.abc import Callable, Collection
from typing import TypeVar

from factbook.checks.definitions import definition_lock
from factbook.checks.versions.staged_store import StagedDefinition, StagedStore
from factbook.definitions import documents
from factbook.definitions.documents import Document
from factbook.errors import PreconditionFailedError
from factbook.storage import Transaction

S = TypeVar("S", bound=StagedDefinition)


def tag(stored: StagedDefinition) -> str:
    """A tag of all that its author can change; it stays when a version comes into effect."""
    parts = (stored.id, stored.newest_version, stored.newest, stored.draft)
    return hashlib.blake2b(documents.ordered(parts), digest_size=12).hexdigest()


def replacement(
    store: StagedStore[S],
    document: Document,
    actor: str,
    now: int,
    *,
    tags: Collection[str] | None,
    publish: bool,
    permitted: bool = False,
) -> Callable[[Transaction], S]:
    """The work that makes the document the draft of its definition, and may publish it at once.

    It raises PreconditionFailedError unless the definition has one of the tags; None is any.
    """

    def work(transaction: Transaction) -> S:
        if publish:
            definition_lock.take(transaction)
        else:
            definition_lock.share(transaction)
        check_tag(store.read(transaction, document["id"]), tags)
        stored = store.put(transaction, document, actor, now)
        if not publish:
            return stored
        return store.publish(transaction, stored.id, actor, now, permitted=permitted)

    return work


def publication(
    store: StagedStore[S],
    id_: str,
    actor: str,
    now: int,
    tags: Collection[str] | None,
    *,
    permitted: bool,
) -> Callable[[Transaction], S]:
    """The work that publishes a draft; without a draft nothing changes."""

    def work(transaction: Transaction) -> S:
        definition_lock.take(transaction)
        check_tag(store.read(transaction, id_), tags)
        return store.publish(transaction, id_, actor, now, permitted=permitted)

    return work


def removal(
    store: StagedStore[S], id_: str, tags: Collection[str] | None
) -> Callable[[Transaction], None]:
    """The work that deletes a definition; it raises NotFoundError if there is none."""

    def work(transaction: Transaction) -> None:
        definition_lock.take(transaction)
        check_tag(store.read(transaction, id_), tags)
        if not store.delete(transaction, id_):
            raise store.missing(transaction, id_)

    return work


def check_tag(stored: StagedDefinition | None, tags: Collection[str] | None) -> None:
    """Raise PreconditionFailedError unless the definition has one of the tags; `*` is any."""
    if tags is None:
        return
    if stored is None or ("*" not in tags and tag(stored) not in tags):
        raise PreconditionFailedError("It was changed since; read it again, and build on that.")
