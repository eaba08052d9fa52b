"""Positions in the feed, given to rows when what they tell of is committed.

A transaction that gave itself a position might commit after one with a higher one was read; one
that kept others from doing so would make all that write wait for each other's commits. So rows come
without, and whoever reads gives positions to those that are there, in the order in which they were
written, one process at a time.
"""

from typing import Final

from factbook.storage import Database, Transaction

COUNTER: Final = "event"
_AT_ONCE: Final = 1_000


async def catch_up(database: Database) -> None:
    """Give every row that is committed its position. It costs next to nothing without new ones."""
    while await database.one(_NEW) and await database.write(number) == _AT_ONCE:
        pass


def number(transaction: Transaction) -> int:
    """Give positions to the oldest rows without one; how many got one."""
    transaction.lock("events")
    [last] = transaction.one("SELECT value FROM counters WHERE name = ?", (COUNTER,)) or (0,)
    count = transaction.run(_NUMBER, (last, _AT_ONCE))
    transaction.run("UPDATE counters SET value = ? WHERE name = ?", (last + count, COUNTER))
    return count


_NEW = "SELECT 1 FROM events WHERE position IS NULL LIMIT 1"

# An order by id is that of the commits where one transaction began after the other had ended.
_NUMBER = """
UPDATE events SET position = numbered.position FROM (
    SELECT id, ? + ROW_NUMBER() OVER (ORDER BY id) AS position FROM events
    WHERE position IS NULL ORDER BY id LIMIT ?
) AS numbered WHERE events.id = numbered.id
"""
