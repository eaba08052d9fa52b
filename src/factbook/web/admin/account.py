"""Administration → Account: name, password, sessions, clients and appearance of a person."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from factbook.audit.trail import AuditEntry
from factbook.auth import invitations, passwords, permissions, sessions, tokens, users
from factbook.auth.oauth import clients, consents
from factbook.auth.oauth.consents import Consent
from factbook.auth.permissions import TITLES
from factbook.auth.tokens import TokenUsage
from factbook.clock import DAY, SECOND
from factbook.errors import InputError, NotFoundError, TooManyRequestsError
from factbook.http.requests import Reply
from factbook.storage import Transaction
from factbook.web.sign_in import password_sign_in
from factbook.web.site import cookies
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import THEMES, PageContext

PATH = "/administration/account"
_YEAR_SECONDS = 365 * DAY // SECOND


class ConsentRow(NamedTuple):
    """A consent, the host of its client, titles of its permissions, and its use in thirty days."""

    consent: Consent
    host: str
    permissions: list[str]
    usage: TokenUsage


async def show(visit: PageContext, status: int = 200, **problems: str) -> Reply:
    """Page of the account of the person signed in."""
    database, ref = visit.state.database, visit.person.ref
    person = await users.find_user(database, ref)
    assert person is not None
    return visit.page(
        "account.html",
        status,
        usage=await _usage(visit),
        person=person,
        role=permissions.ROLE_TITLES[person.role],
        permissions=[TITLES[name] for name in TITLES if name in person.permissions],
        sessions=await sessions.list_sessions(database, ref),
        consents=await _consents(visit),
        themes=[(theme, theme.capitalize()) for theme in THEMES],
        name_problem=problems.get("name_problem", ""),
        password_problem=problems.get("password_problem", ""),
    )


async def _consents(visit: PageContext) -> list[ConsentRow]:
    """The clients that act for the person."""
    found = await consents.list_consents(visit.state.database, visit.person.ref, visit.now)
    usage = await visit.state.usage.of([each.id for each in found])
    return [
        ConsentRow(
            each,
            clients.extract_redirect_host(each.redirect_uri),
            [TITLES[name] for name in each.permissions],
            usage[each.id],
        )
        for each in found
    ]


async def _usage(visit: PageContext) -> TokenUsage:
    """The use of all tokens of the person."""
    ids = await tokens.list_token_ids(visit.state.database, visit.person.ref)
    found = (await visit.state.usage.of(ids)).values()
    return TokenUsage(sum(one.calls for one in found), sum(one.size for one in found))


async def rename(visit: PageContext) -> Reply:
    """Change the display name."""
    ref, name = visit.person.ref, visit.sent.one("display_name")
    write = visit.writing(AuditEntry("person.change", ref, {"changed": "display name"}))
    try:
        await write(lambda transaction: users.rename_user(transaction, ref, name))
    except InputError as error:
        return await show(visit, 400, name_problem=error.message)
    return visit.redirect(PATH, "Your name was changed.")


async def change_password(visit: PageContext) -> Reply:
    """Change the password; ends every other session, every consent and every link to set it."""
    ref = visit.person.ref
    try:
        hashed = await _new_password(visit)
    except (InputError, TooManyRequestsError) as error:
        return await show(visit, error.status, password_problem=error.message)
    keep = visit.person.hash

    def work(transaction: Transaction) -> None:
        invitations.withdraw_password_links(transaction, ref)
        users.store_password_hash(transaction, ref, hashed)
        sessions.end_other_sessions(transaction, ref, keep)
        consents.end_consents_of(transaction, ref)

    await visit.writing(AuditEntry("person.change", ref, {"changed": "password"}))(work)
    password_sign_in.know(visit, ref, hashed)
    ended = "every other session has ended, and every client has to ask again."
    return visit.redirect(PATH, f"Your password was changed; {ended}")


async def end_session(visit: PageContext) -> Reply:
    """End one of the person's sessions, or all but this one."""
    ref, id_, keep = visit.person.ref, visit.sent.one("session"), visit.person.hash

    def work(transaction: Transaction) -> None:
        if id_ == "others":
            sessions.end_other_sessions(transaction, ref, keep)
        elif not sessions.end_session_by_id(transaction, ref, id_):
            raise NotFoundError("This session has already ended.")

    await visit.writing(AuditEntry("session.end", ref, {"session": id_[:16]}))(work)
    return visit.redirect(PATH, "The session has ended.")


async def end_consent(visit: PageContext) -> Reply:
    """End what the person has let a client of OAuth do."""
    ref, id_ = visit.person.ref, visit.sent.one("consent")

    def about(ended: Consent) -> AuditEntry:
        detail = {"client": ended.client, "name": ended.client_name}
        return AuditEntry("consent.revoke", ended.id, detail)

    ended = await visit.writing(about)(lambda tx: consents.revoke_own_consent(tx, id_, ref))
    return visit.redirect(PATH, f"{ended.client_name} has no access any more.")


async def choose_theme(visit: PageContext) -> Reply:
    """Set the theme of the pages: light, dark, or the system's."""
    theme = visit.sent.one("theme")
    if theme not in THEMES:
        raise InputError(f"There is no theme of this name; there are {', '.join(THEMES)}.")
    visit.keep_cookie(cookies.THEME, theme, _YEAR_SECONDS)
    return visit.redirect(PATH)


async def _new_password(visit: PageContext) -> str:
    """Hash of the new password in the form.

    Raises InputError, and TooManyRequestsError after too many wrong guesses of the current one.
    """
    ref, form = visit.person.ref, visit.sent
    stored = await users.get_password_hash(visit.state.database, ref)
    async with visit.site.hashing:
        # Here, so that many that come at once are not all let through before the first has failed.
        tried = password_sign_in.in_session(visit)
        tried.check()
        if not await asyncio.to_thread(passwords.matches_password, stored, form.raw("current")):
            tried.count()
            raise InputError("The current password is wrong.")
    password = form.raw("password")
    passwords.check_password(password, ref)
    if password != form.raw("again"):
        raise InputError("The two new passwords differ.")
    return await visit.site.slow(passwords.hash_password, password)


ACCOUNT: Sequence[PageRoute] = (
    PageRoute("GET", PATH, show),
    PageRoute("POST", f"{PATH}/name", rename),
    PageRoute("POST", f"{PATH}/password", change_password),
    PageRoute("POST", f"{PATH}/sessions", end_session),
    PageRoute("POST", f"{PATH}/consents", end_consent),
    PageRoute("POST", f"{PATH}/theme", choose_theme),
)
