"""Sessions: how people sign in and out."""

from collections.abc import Callable

from factbook.audit.trail import AuditEntry, Caller
from factbook.auth import group_roles, sessions, users
from factbook.clock import SECOND
from factbook.scim import identity
from factbook.storage import Transaction
from factbook.web import pages
from factbook.web.pages import PageContext

Check = Callable[[Transaction], None]


async def start(visit: PageContext, ref: str, how: str, check: Check | None = None) -> None:
    """Sign the person in, with a fresh session value.

    `check` may still refuse it in the transaction. Raises NotFoundError for a person who may not
    sign in.
    """
    value, now = sessions.generate_cookie(), visit.now
    hash_ = sessions.hash_cookie(value, visit.state.token_key)
    agent = visit.request.header(b"user-agent") or ""
    before = visit.session

    rules = group_roles.make_group_rules(visit.state.settings)
    caller = Caller(ref, now, visit.address)

    def work(transaction: Transaction) -> None:
        identity.settle_role(transaction, ref, rules, caller)
        users.record_sign_in(transaction, ref, now)
        if check is not None:
            check(transaction)
        if before is not None:
            sessions.end_session(transaction, before.hash)
        sessions.start_session(
            transaction, hash=hash_, ref=ref, now=now, address=visit.address, agent=agent
        )

    await visit.writing(AuditEntry("session.start", ref, {"how": how}), actor=ref)(work)
    visit.keep_cookie(pages.SESSION_COOKIE, value, sessions.SESSION_LIFETIME // SECOND)
    visit.drop_cookie(pages.VISITOR_COOKIE)


async def end(visit: PageContext) -> None:
    """Sign the person out."""
    hash_ = visit.person.hash
    write = visit.writing(AuditEntry("session.end", visit.person.ref))
    await write(lambda transaction: sessions.end_session(transaction, hash_))
    visit.session = None
    visit.drop_cookie(pages.SESSION_COOKIE)
