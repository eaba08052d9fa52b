"""Locks of catalog writes, which let writes of different sets run concurrently on PostgreSQL.

Every write takes locks in the same order to prevent deadlocks:

1. The catalog, shared. An exclusive lock blocks every other write: rare writes that affect all
   sets use it, and early releases, which had no other lock.
2. The owners of the entities that it changes, each exclusively. No other write touches their rows.
3. After everything else is written, the references that its edges may have in common with other
   writes, each as one of a few stripes. These locks are held only briefly, until the commit.

An edge changes the relations that its target shows, even if another owner has the target. To write
there, the write shares the lock of that owner, without waiting: a write of that owner may wait for
this one. If the lock is taken, this write restarts and waits for that lock before taking any other.
"""

import zlib
from collections.abc import Iterable
from typing import Final, Protocol

from factbook.storage import Transaction
from factbook.storage.database import RestartError

# PostgreSQL has one lock table for all connections, with room for 6,400 locks by default.
_STRIPES: Final = 64
# A write with more owners needs most of the stripes anyway, so it cannot run concurrently.
_MOST_OWNERS: Final = 256
_MOST_RESTARTS: Final = 3


def owner(set_name: str | None, ref: str) -> str:
    """The lock name of an entity's rows: its set, or a stripe of the entities outside any set."""
    return f"outside {_stripe(ref)}" if set_name is None else f"set {set_name}"


def lock_alone(transaction: Transaction) -> None:
    """Wait for all other catalog writes and block new ones."""
    transaction.lock("catalog")


class WriteGuard(Protocol):
    """Condition of a write, checked under its locks when it begins and when it ends."""

    def begin(self, transaction: Transaction, held: "WriteLocks") -> None:
        """Check before anything is written, and take further locks if needed; may refuse."""

    def end(self, transaction: Transaction) -> str:
        """Check again after everything is written; returns the grant to record in the audit."""


class WriteLocks:
    """The locks of one write, kept across restarts; `needed` maps owners to true if shared.

    `is_alone` is true if no other catalog write can run at the same time.
    """

    def __init__(self, needed: dict[str, bool], guard: WriteGuard | None = None) -> None:
        self._needed = needed
        self._guard = guard
        self._missed: dict[str, bool] = {}
        self._restarts = 0
        self.is_alone = False
        self._held: dict[str, bool] = {}

    def begin(self, transaction: Transaction) -> None:
        """Take the locks known to be needed; the guard may refuse the write."""
        self._take(transaction)
        if self._guard is not None:
            self._guard.begin(transaction, self)

    def end(self, transaction: Transaction) -> str:
        """Run the guard's final check; returns its grant, or an empty text without a guard."""
        return "" if self._guard is None else self._guard.end(transaction)

    def _take(self, transaction: Transaction) -> None:
        is_late = self._restarts > _MOST_RESTARTS or len(self._needed) > _MOST_OWNERS
        self.is_alone = transaction.is_alone or is_late
        transaction.lock("catalog", shared=not self.is_alone)
        self._held = {}
        if self.is_alone:
            return
        if self._missed:
            # Their holders may later need locks that this write is about to take.
            transaction.outwait(self._missed)
            self._missed = {}
        transaction.lock_each(self._needed)
        self._held |= self._needed

    def owns(self, name: str) -> bool:
        """Return true if no other write can change or render entities of this owner."""
        return self.is_alone or not self._held.get(name, True)

    def require(self, owners: Iterable[str]) -> None:
        """Restart unless this write has locked these owners exclusively."""
        missed = {name: False for name in owners if not self.owns(name)}
        if missed:
            self._restart(missed)

    def share(self, transaction: Transaction, owners: Iterable[str]) -> bool:
        """Share the locks of these owners; returns true if any of them was not held before.

        Restarts if another write holds one of them exclusively.
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
