"""The store of hints about what is to be read again, and of deliveries that were seen."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from factbook.clock import DAY, MINUTE, SECOND
from factbook.storage import Database, Transaction

# Events that come within this time are answered by one reading.
COALESCED: Final = 5 * SECOND
# How long a delivery that comes again is known by its id.
_REMEMBERED: Final = DAY
# How long a hint stays after its time: that of an importer which is not there any more.
_ABANDONED: Final = 7 * DAY
_MOST_ATTEMPTS: Final = 5


class GivenHint(NamedTuple):
    """Hint of an importer; `given` counts how often it was given, also while it was followed."""

    importer: str
    hint: str
    due_at: int
    given: int
    attempts: int


def is_new(transaction: Transaction, importer: str, delivery: str, now: int) -> bool:
    """Remember a delivery; returns false for one that was seen before."""
    transaction.run("DELETE FROM import_deliveries WHERE received_at <= ?", (now - _REMEMBERED,))
    transaction.run("DELETE FROM import_hints WHERE due_at <= ?", (now - _ABANDONED,))
    return bool(transaction.run(_DELIVER, (importer, delivery, now)))


def give(transaction: Transaction, importer: str, hints: Iterable[str], now: int) -> None:
    """Give hints; one that waits keeps its time."""
    for hint in sorted(hints):
        transaction.run(_GIVE, (importer, hint, now + COALESCED))


async def due(database: Database, importers: Iterable[str], now: int) -> list[GivenHint]:
    """The hints of these importers whose time has come."""
    rows = await database.all(_DUE, (list(importers), now))
    return [GivenHint(*row) for row in rows]


async def waiting(database: Database) -> tuple[int, int | None]:
    """The number of hints that wait, counted up to 10,000, and the time of the earliest."""
    row = await database.one(_WAITING)
    return (row[0], row[1]) if row else (0, None)


def followed(transaction: Transaction, hints: Sequence[GivenHint], now: int) -> None:
    """Forget hints that were followed, but for those given again meanwhile."""
    for hint in hints:
        which = (hint.importer, hint.hint)
        transaction.run(_FOLLOWED, (*which, hint.given))
        transaction.run(_AGAIN, (now + COALESCED, *which))


def postpone(transaction: Transaction, hints: Sequence[GivenHint], now: int) -> None:
    """Follow hints later; one that was tried too often is left to the next reading of all."""
    for hint in hints:
        which = (hint.importer, hint.hint)
        if hint.attempts + 1 >= _MOST_ATTEMPTS:
            transaction.run(_FOLLOWED, (*which, hint.given))
        else:
            pause = MINUTE << hint.attempts
            transaction.run(_POSTPONE, (now + pause, *which))


def forget(transaction: Transaction, importer: str) -> None:
    """Delete every hint and delivery of an importer."""
    transaction.run("DELETE FROM import_hints WHERE importer = ?", (importer,))
    transaction.run("DELETE FROM import_deliveries WHERE importer = ?", (importer,))


_DELIVER: Final = """
INSERT INTO import_deliveries (importer, delivery, received_at) VALUES (?, ?, ?)
ON CONFLICT DO NOTHING
"""
_GIVE: Final = """
INSERT INTO import_hints (importer, hint, due_at, given, attempts) VALUES (?, ?, ?, 1, 0)
ON CONFLICT (importer, hint) DO UPDATE SET given = import_hints.given + 1, attempts = 0,
    due_at = CASE WHEN excluded.due_at < import_hints.due_at
        THEN excluded.due_at ELSE import_hints.due_at END
"""
_DUE: Final = """
SELECT importer, hint, due_at, given, attempts FROM import_hints
WHERE importer IN LIST(?) AND due_at <= ? ORDER BY importer, hint
"""
_WAITING: Final = """
SELECT COUNT(*), MIN(due_at)
FROM (SELECT due_at FROM import_hints ORDER BY due_at LIMIT 10000) AS earliest
"""
_FOLLOWED: Final = "DELETE FROM import_hints WHERE importer = ? AND hint = ? AND given = ?"
_AGAIN: Final = "UPDATE import_hints SET due_at = ? WHERE importer = ? AND hint = ?"
_POSTPONE: Final = """
UPDATE import_hints SET due_at = ?, attempts = attempts + 1 WHERE importer = ? AND hint = ?
"""
