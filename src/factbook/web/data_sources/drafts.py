"""Editions of drafts: a form does not overwrite one that its author has not seen."""

from collections.abc import Callable
from typing import Any, TypeVar

from factbook.datasources.stores import StoredSource, source_store
from factbook.errors import ConflictError
from factbook.storage import Transaction, Write

T = TypeVar("T")


class OvertakenError(ConflictError):
    """Someone else has changed the draft in the meantime."""

    def __init__(self, newer: StoredSource | None) -> None:
        self.newer = newer
        super().__init__(
            "The data source has been deleted in the meantime." if newer is None else None
        )


def unless_overtaken(write: Write, source_id: str, seen: str) -> Write:
    """The same work, raising OvertakenError if the draft is not the one that was seen."""

    def guarded(function: Callable[[Transaction], T]) -> Any:
        def work(transaction: Transaction) -> T:
            there = source_store.read(transaction, source_id)
            if there is None or edition(there) != seen:
                raise OvertakenError(there)
            return function(transaction)

        return write(work)

    return guarded


def edition(stored: StoredSource) -> str:
    """Identifier of a draft's edition."""
    return str(stored.updated_at)
