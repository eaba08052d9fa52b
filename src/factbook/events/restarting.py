"""A new beginning of the feed, after which no place of an earlier one is given again."""

from typing import Final

from factbook.events.event import FeedPosition
from factbook.events.numbering import COUNTER
from factbook.storage import Transaction

_FORGOTTEN: Final = "event_forgotten"


def restart(transaction: Transaction, above: int) -> FeedPosition:
    """Forget every event, and go on at a place that is higher than `above` and any given here.

    For a database that was put back: what was told after the backup is told under none of the ids
    that are given from now on, and every cursor from before is of events that are not kept.
    """
    transaction.lock("events")
    [last] = transaction.one("SELECT value FROM counters WHERE name = ?", (COUNTER,)) or (0,)
    last = max(last + 1, above)
    transaction.run("DELETE FROM events")
    for name in (COUNTER, _FORGOTTEN):
        transaction.run("UPDATE counters SET value = ? WHERE name = ?", (last, name))
    return FeedPosition(last + 1, 0)
