"""Requests to collect one entity's facts now, kept until a worker has processed them."""

from factbook.storage import Database, Transaction, Write


async def add(
    database: Database, ref: str, actor: str, now: int, write: Write | None = None
) -> bool:
    """Ask for the facts of the entity with this reference; False when there is no such entity.

    Asking again before it was done changes nothing. `write` runs a function in a transaction, and
    is the database's own when it is left out.
    """

    def work(transaction: Transaction) -> bool:
        row = transaction.one("SELECT id FROM entities WHERE ref = ?", (ref,))
        if row is not None:
            transaction.run(_ADD, (row[0], actor, now))
        return row is not None

    return await (write or database.write)(work)


async def waiting(database: Database) -> bool:
    """Return true if a request is pending."""
    return await database.one("SELECT 1 FROM collection_requests LIMIT 1") is not None


def take(transaction: Transaction, limit: int) -> list[int]:
    """Up to `limit` entity ids with pending requests, oldest first.

    The requests are removed in this transaction; if it fails, they remain pending.
    """
    transaction.lock("collection-requests")
    rows = transaction.all(
        "SELECT entity_id FROM collection_requests ORDER BY requested_at, entity_id LIMIT ?",
        (limit,),
    )
    ids = [row[0] for row in rows]
    transaction.run("DELETE FROM collection_requests WHERE entity_id IN LIST(?)", (ids,))
    return ids


_ADD = """
INSERT INTO collection_requests (entity_id, requested_by, requested_at) VALUES (?, ?, ?)
ON CONFLICT (entity_id) DO NOTHING
"""
