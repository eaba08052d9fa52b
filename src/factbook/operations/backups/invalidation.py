"""What has to end when a database goes back in time, for those who know what came after."""

from factbook.audit import trail
from factbook.audit.trail import COMMAND_LINE, AuditEntry, Caller
from factbook.auth import invitations, sessions
from factbook.events import restarting
from factbook.storage import Transaction
from factbook.webhooks import store as webhooks


def settled(transaction: Transaction, now: int, *, above: int = 0, what: str = "") -> int:
    """Begin the feed of events anew, and end sessions and invitations; the feed's first place.

    The places of events go on from `now`, in milliseconds, or from `above` where that is higher: no
    event gets the id of one that was told before, as long as fewer than a thousand rows a second
    were told. Readers with an older cursor get 410. Webhooks go on with what happens from here on.
    Who signed out, or used an invitation, since the backup does not find that undone.
    """
    place = restarting.restart(transaction, max(now, above))
    webhooks.begin_at(transaction, place)
    sessions.forget_everyone(transaction)
    invitations.forget_everyone(transaction)
    trail.append(
        transaction,
        trail.record(Caller(COMMAND_LINE, now), AuditEntry("database.restore", what, {})),
    )
    return place.position
