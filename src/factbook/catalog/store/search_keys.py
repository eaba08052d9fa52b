"""Deletion of search keys that no entity has any more."""

from functools import partial
from typing import Final

from factbook.catalog.store import locks
from factbook.clock import Throttle
from factbook.storage import Database, Transaction

# Keys that are looked at, and deleted, in one go, so that no push waits long.
_AT_ONCE: Final = 500


async def sweep(database: Database, pace: Throttle) -> int:
    """Delete keys without search rows, in portions; returns their number."""
    last, gone = -1, 0
    while rows := await database.search(_USES, (last, _AT_ONCE)):
        last = rows[-1][0]
        unused = [id_ for id_, used in rows if used is None]
        if unused:
            gone += await database.write(partial(_forget, ids=unused))
        await pace.rest()
    return gone


def _forget(transaction: Transaction, *, ids: list[int]) -> int:
    # A push may have found one of them since, and added rows under it. Pushes share this lock from
    # before they look for keys until their rows are committed.
    locks.lock_alone(transaction)
    return transaction.run(_FORGET, (ids,))


# The limit keeps PostgreSQL from reading all search rows for the keys of one page.
_USES: Final = """
SELECT k.id, (SELECT s.key_id FROM search s WHERE s.key_id = k.id LIMIT 1)
FROM search_keys k WHERE k.id > ? ORDER BY k.id LIMIT ?
"""

_FORGET: Final = """
DELETE FROM search_keys WHERE id IN LIST(?)
AND (SELECT s.key_id FROM search s WHERE s.key_id = search_keys.id LIMIT 1) IS NULL
"""
