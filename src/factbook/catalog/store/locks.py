"""Locks of the catalog's writes: those of different sets run at the same time on PostgreSQL.

Every write takes locks in the same order, so that none waits in a circle:

1. The catalog, shared. Whoever takes it alone keeps out every other write: rare writes that concern
   all sets, and releases before this one, which knew no other lock.
2. The owners of the entities that it changes, each alone. No other write touches their rows.
3. When everything else is written, the references at which its edges meet those of others, as one
   of a few stripes. From here to the commit it is quick.

An edge changes the relations that its target shows, whoever owns that. To write there, the write
shares the lock of the target's owner, without waiting: a write of that owner may wait for this one.
If somebody has it, this write begins anew, and waits for that lock before it takes any other.
"""

import zlib
from collections.abc import Iterable
from typing import Final, Protocol

from factbook.storage import Transaction
from factbook.storage.database import RestartError

# Locks are in a table of PostgreSQL's that is shared by all, by default with room for 6,400.
_STRIPES: Final = 64
# Whoever needs so many has most of the stripes, too, which only one write has at a time.
_MOST_OWNERS: Final = 256
_MOST_RESTARTS: Final = 3


def owner(set_name: str | None, ref: str) -> str:
    """The lock of an entity's rows: that of its set, or one for some of those outside any set."""
    return f"outside {_stripe(ref)}" if set_name is None else f"set {set_name}"


def lock_alone(transaction: Transaction) -> None:
    """Wait for the other writes of the catalog, and keep them out."""
    transaction.lock("catalog")


class WriteGuard(Protocol):
    """Condition of a write that is looked at under its locks: when it begins and when it ends."""

    def begin(self, transaction: Transaction, held: "WriteLocks") -> None:
        """Look before anything is written, and lock what else it depends on; may refuse."""

    def end(self, transaction: Transaction) -> str:
        """Look again when everything is written; what allows the write, for the audit."""


class WriteLocks:
    """The locks of one write, kept over its restarts; `needed` are owners, true if shared.

    `is_alone` if no other write of the catalog runs at the same time.
    """

    def __init__(self, needed: dict[str, bool], guard: WriteGuard | None = None) -> None:
        self._needed = needed
        self._guard = guard
        self._missed: dict[str, bool] = {}
        self._restarts = 0
        self.is_alone = False
        self._held: dict[str, bool] = {}

    def begin(self, transaction: Transaction) -> None:
        """Take the locks that the write is known to need; its guard may refuse it."""
        self._take(transaction)
        if self._guard is not None:
            self._guard.begin(transaction, self)

    def end(self, transaction: Transaction) -> str:
        """Let the guard look at what was written; what allowed it, or an empty text."""
        return "" if self._guard is None else self._guard.end(transaction)

    def _take(self, transaction: Transaction) -> None:
        is_late = self._restarts > _MOST_RESTARTS or len(self._needed) > _MOST_OWNERS
        self.is_alone = transaction.is_alone or is_late
        transaction.lock("catalog", shared=not self.is_alone)
        self._held = {}
        if self.is_alone:
            return
        if self._missed:
            # Whoever has them may need, in the end, what this write is about to take.
            transaction.outwait(self._missed)
            self._missed = {}
        transaction.lock_each(self._needed)
        self._held |= self._needed

    def owns(self, name: str) -> bool:
        """Return true if nobody else changes or renders entities of this owner."""
        return self.is_alone or not self._held.get(name, True)

    def require(self, owners: Iterable[str]) -> None:
        """Begin anew, unless these owners are locked for this write alone."""
        missed = {name: False for name in owners if not self.owns(name)}
        if missed:
            self._restart(missed)

    def share(self, transaction: Transaction, owners: Iterable[str]) -> bool:
        """Share the locks of these owners; returns true if any of them was not held before.

        Begins anew if somebody has one of them alone.
        """
        new = {name: True for name in owners if not self.is_alone and name not in self._held}
        if not new:
            return False
        if len(self._held) + len(new) > _MOST_OWNERS or not transaction.try_lock_each(new):
            self._restart(new)
        self._held |= new
        return True

    def meet(self, transaction: Transaction, refs: Iterable[str]) -> None:
        """Wait for other writes that add entities with these references or edges to them."""
        if not self.is_alone:
            stripes = {_stripe(ref) for ref in refs}
            transaction.lock_each({f"references {stripe}": False for stripe in stripes})

    def _restart(self, missed: dict[str, bool]) -> None:
        self._restarts += 1
        self._missed = missed
        self._needed = {**self._needed, **missed}
        raise RestartError


def _stripe(ref: str) -> int:
    return zlib.crc32(ref.encode()) % _STRIPES
