"""Requests to collect one entity's facts now, kept until a worker has processed them."""

from factbook.catalog.store import stored_entities
from factbook.storage import Database, Transaction, Write


async def request_refresh(
    database: Database, ref: str, actor: str, now: int, write: Write | None = None
) -> bool:
    """Request the facts of the entity with this reference; False if there is no such entity.

    A repeated request changes nothing while the first is pending. `write` runs a function in a
    transaction, and defaults to the database's own.
    """

    def work(transaction: Transaction) -> bool:
        ids = stored_entities.read_ids_of_refs(transaction, [ref])
        transaction.many(_REQUEST_REFRESH, [(id_, actor, now) for id_ in ids.values()])
        return bool(ids)

    return await (write or database.write)(work)


async def has_refresh_requests(database: Database) -> bool:
    """Return true if a request is pending."""
    return await database.one("SELECT 1 FROM collection_requests LIMIT 1") is not None


def take_refresh_requests(transaction: Transaction, limit: int) -> list[int]:
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


_REQUEST_REFRESH = """
INSERT INTO collection_requests (entity_id, requested_by, requested_at) VALUES (?, ?, ?)
ON CONFLICT (entity_id) DO NOTHING
"""
