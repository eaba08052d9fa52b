"""Sessions: authentication of a page's request, and the CSRF check of its form."""

import hmac
from collections.abc import Callable
from http import HTTPStatus

from factbook.audit import trail
from factbook.audit.trail import AuditEntry, Caller
from factbook.auth import sessions, users
from factbook.auth.sessions import Session
from factbook.auth.tokens import digest, is_noted
from factbook.clock import SECOND
from factbook.errors import NotAllowedError
from factbook.storage import Transaction
from factbook.web.site import cookies
from factbook.web.site.forms import CSRF
from factbook.web.site.page_context import PageContext

Check = Callable[[Transaction], None]


async def find(visit: PageContext) -> None:
    """Find the session, and give the request the token that its forms carry."""
    state = visit.state
    value = visit.cookie(cookies.SESSION)
    if value:
        visit.session = await _alive(visit, digest(value, state.token_key))
        if visit.session is None:
            visit.drop_cookie(cookies.SESSION)
    if visit.session is None:
        value = visit.cookie(cookies.VISITOR)
        if not value:
            value = sessions.generate()
            visit.keep_cookie(cookies.VISITOR, value)
    visit.form_key = digest(f"form {value}", state.token_key)


def check_form(visit: PageContext) -> None:
    """Raise NotAllowedError unless the form carries the token of the person's own page."""
    sent = cookies.unmasked(visit.sent.raw(CSRF))
    if not hmac.compare_digest(sent, visit.form_key):
        raise NotAllowedError(
            "The form is too old, comes from another site, or the browser keeps no cookies. "
            "Open the page again and repeat what you did."
        )


async def start(visit: PageContext, ref: str, how: str, check: Check | None = None) -> None:
    """Sign the person in, with a fresh session value.

    `check` may still refuse it in the transaction. Raises NotFoundError for a person who may not
    sign in.
    """
    value, now = sessions.generate(), visit.now
    hash_ = sessions.digest(value, visit.state.token_key)
    agent = visit.request.header(b"user-agent") or ""
    before = visit.session

    def work(transaction: Transaction) -> None:
        users.signed_in(transaction, ref, now)
        if check is not None:
            check(transaction)
        if before is not None:
            sessions.end(transaction, before.hash)
        sessions.start(
            transaction, hash=hash_, ref=ref, now=now, address=visit.address, agent=agent
        )

    caller = Caller(ref, now, visit.address)
    entry = AuditEntry("session.start", ref, {"how": how})
    await trail.writing(visit.state.database, caller, entry, HTTPStatus.SEE_OTHER)(work)
    visit.keep_cookie(cookies.SESSION, value, sessions.LIFETIME // SECOND)
    visit.drop_cookie(cookies.VISITOR)


async def end(visit: PageContext) -> None:
    """Sign the person out."""
    hash_ = visit.person.hash
    write = visit.writing(AuditEntry("session.end", visit.person.ref))
    await write(lambda transaction: sessions.end(transaction, hash_))
    visit.session = None
    visit.drop_cookie(cookies.SESSION)


async def _alive(visit: PageContext, hash_: str) -> Session | None:
    state, now = visit.state, visit.now
    state.database.refresh()
    found = await sessions.find(state.database, hash_)
    if found is None or not found.counts(now):
        return None
    if not (is_noted(found.used_at, now) or is_noted(state.touched.get(hash_, 0), now)):
        state.touched[hash_] = now
        state.spawn(state.database.write(lambda tx: sessions.touch(tx, hash_, now)))
    return found
