"""Invalidation of state that clients saw and a restored database has not."""

from factbook.audit import trail
from factbook.audit.trail import COMMAND_LINE, AuditEntry, Caller
from factbook.auth import invitations, sessions
from factbook.events import store as events
from factbook.storage import Transaction
from factbook.webhooks import store as webhooks


def settled(transaction: Transaction, now: int, *, above: int = 0, what: str = "") -> int:
    """Restart the feed of events, end sessions and invitations, and return the feed's first place.

    The places of events go on from `now`, in milliseconds, or from `above` where that is higher: no
    event gets the id of an earlier one, as long as fewer than a thousand rows a second were
    recorded. Readers with an older cursor get 410. Webhooks go on with the events from here on.
    Sign-outs and used invitations since the backup are not undone.
    """
    place = events.restart(transaction, max(now, above))
    webhooks.begin_at(transaction, place)
    sessions.forget_everyone(transaction)
    invitations.forget_everyone(transaction)
    trail.append(
        transaction,
        trail.record(Caller(COMMAND_LINE, now), AuditEntry("database.restore", what, {})),
    )
    return place.position
