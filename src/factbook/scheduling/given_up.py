"""Batches that were given up, as the processes that worked on them ended time and again.

They are listed until they are tried again, or until a later run of everything has ended.
"""

from typing import NamedTuple

from factbook.storage import Database, Transaction


class GivenUpBatch(NamedTuple):
    """A batch, how often it was begun, and when it was given up."""

    run_id: int
    number: int
    source_id: str
    work: str
    attempts: int
    given_up_at: int


def record(transaction: Transaction, batch: GivenUpBatch) -> None:
    """List the batch."""
    transaction.insert("given_up_batches", GivenUpBatch._fields, [batch])


async def listed(database: Database, source_id: str | None = None) -> list[GivenUpBatch]:
    """The batches of a source that were given up, or of all, newest first."""
    rows = await database.all(_LISTED, (source_id, source_id))
    return [GivenUpBatch(*row) for row in rows]


def take(transaction: Transaction, source_id: str) -> list[str]:
    """Take the batches of a source off the list; returns their work."""
    return [work for (work,) in transaction.all(_TAKE, (source_id,))]


def forget(transaction: Transaction, source_id: str, before: int) -> None:
    """Delete the batches of a source's runs before this one."""
    transaction.run(_FORGET, (source_id, before))


_LISTED = """
SELECT run_id, number, source_id, work, attempts, given_up_at FROM given_up_batches
WHERE CAST(? AS TEXT) IS NULL OR source_id = ? ORDER BY run_id DESC, number
"""

_TAKE = "DELETE FROM given_up_batches WHERE source_id = ? RETURNING work"

_FORGET = "DELETE FROM given_up_batches WHERE source_id = ? AND run_id < ?"
