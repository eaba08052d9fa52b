"""The store of definitions whose results have to be ready for every entity before they are shown.

Readers see the published version. One that gives other results is pending in a slot of its own
until every entity is evaluated; only then does it take the place of the one before.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, TypeVar

from factbook.checks.definitions import definition_lock
from factbook.checks.exemptions import exemption_store
from factbook.definitions import documents
from factbook.definitions.documents import Document
from factbook.definitions.store import (
    MINOR,
    PATCH,
    DefinitionStore,
    DefinitionTables,
    DefinitionVersion,
    StoredDefinition,
)
from factbook.storage import Transaction


class StagedDefinition(StoredDefinition, frozen=True):
    """A stored check or scorecard; `slot` is None before it is in effect."""

    pending: dict[str, Any] | None
    pending_version: str | None
    slot: int | None
    pending_slot: int | None

    @property
    def newest(self) -> dict[str, Any] | None:
        return self.pending or self.published

    @property
    def newest_version(self) -> str:
        return self.pending_version or self.version

    @property
    @abstractmethod
    def reached(self) -> int | None:
        """An id up to which about as many entities are as the pending version is evaluated for."""


S = TypeVar("S", bound=StagedDefinition)


class StagedStore(DefinitionStore[S]):
    """The checks, or the scorecards."""

    # The members that decide about results; all else is text.
    decisive: ClassVar[tuple[str, ...]]

    def __init__(
        self, noun: Literal["check", "scorecard"], tables: DefinitionTables, form: type[S]
    ) -> None:
        super().__init__(noun, tables, form, definition_lock.REVISION)
        self._exempt_from = noun

    def create(self, transaction: Transaction, document: Document, actor: str, now: int) -> S:
        """Store a new definition as a draft; what it refers to stays until it is stored."""
        definition_lock.share(transaction)
        return super().create(transaction, document, actor, now)

    def publish(
        self,
        transaction: Transaction,
        id_: str,
        actor: str,
        now: int,
        *,
        permitted: bool = False,
    ) -> S:
        """Publish the draft under the next version; without a draft nothing changes.

        If it gives other results, the version is pending until they are there for every entity.
        `permitted` tells that the actor may write any definition, not only those of its groups.
        """
        definition_lock.take(transaction)
        return super().publish(transaction, id_, actor, now)

    def delete(self, transaction: Transaction, id_: str) -> bool:
        definition_lock.take(transaction)
        return super().delete(transaction, id_)

    def raised(self, before: Document, after: Document) -> int:
        return PATCH if alike(before, after, self.decisive) else MINOR

    def forget(self, transaction: Transaction, stored: S) -> None:
        exemption_store.delete_of(transaction, self._exempt_from, stored.id)

    @abstractmethod
    def begin(self, transaction: Transaction, stored: S, now: int) -> None:
        """Begin to evaluate a version for every entity, or begin anew."""

    def _publish(
        self, transaction: Transaction, before: S, version: DefinitionVersion, part: int
    ) -> None:
        if part == PATCH and before.pending is None:
            self._publish_text(transaction, before, version)
            return
        text = documents.json(before.draft or {})
        transaction.run(self._sql(_PUBLISH_PENDING), (text, *version, before.id))
        if part != PATCH:
            self.begin(transaction, before, version.published_at)

    def _publish_text(
        self, transaction: Transaction, before: S, version: DefinitionVersion
    ) -> None:
        """Put a draft into effect that gives the same results."""
        super()._publish(transaction, before, version, PATCH)


def alike(document: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    """Return true if two documents have the same values of some members."""
    return all(document.get(name) == other.get(name) for name in names)


_PUBLISH_PENDING: Final = """
UPDATE {definitions} SET draft = NULL, pending = ?, pending_version = ?, published_at = ?,
    published_by = ?
WHERE id = ?
"""
