"""Sign-in, sign-out, and links that create an account or set a password."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from factbook.audit.trail import AuditEntry
from factbook.auth import invitations, passwords, sessions, users
from factbook.auth.invitations import Invitation
from factbook.clock import SECOND
from factbook.errors import (
    ConflictError,
    FactbookError,
    InputError,
    NotFoundError,
    TooManyRequestsError,
)
from factbook.http import refusals, urls
from factbook.http.admission import RateLimit
from factbook.http.requests import Reply
from factbook.scim import identity
from factbook.storage import Transaction
from factbook.web.site import cookies, session
from factbook.web.site.endpoint import OPEN, PageRoute
from factbook.web.site.page_context import PageContext

_WAY = ", or with a browser that you have signed in with before"
# Stands for whoever signs in with the provider, where no name is known beforehand.
ELSEWHERE = "openid"


@dataclass(frozen=True)
class Guesses:
    """Limits of one request, each with its key, and the known browser's way around them."""

    limits: tuple[tuple[RateLimit, str], ...]
    way: str = ""

    def check(self) -> None:
        """Raise TooManyRequestsError if no further guess is allowed now; counts nothing."""
        if seconds := max(limit.waits(key) for limit, key in self.limits):
            raise TooManyRequestsError(
                f"Too many attempts. Try again in {seconds} seconds{self.way}.",
                retry_after=seconds,
            )

    def count(self) -> None:
        """Count a wrong guess."""
        for limit, key in self.limits:
            limit.take(key)


def at_sign_in(visit: PageContext, ref: str, stored: str | None) -> Guesses:
    """Limits for the password of this person with this hash; None where there is none."""
    if (id_ := _known(visit, ref, stored)) is not None:
        return Guesses(((visit.site.known_browsers, id_),))
    by_address = (visit.state.failures, visit.address)
    return Guesses((by_address, (visit.site.wrong_passwords, ref)), _WAY)


def elsewhere(visit: PageContext) -> Guesses:
    """Limits for answers of the provider, whoever they are about."""
    if (id_ := _known(visit, ELSEWHERE, "")) is not None:
        return Guesses(((visit.site.known_browsers, id_),))
    return Guesses(((visit.state.failures, visit.address),), _WAY)


def in_session(visit: PageContext) -> Guesses:
    """Limits for the password of the person signed in, apart from those at sign-in."""
    return Guesses(((visit.site.known_browsers, visit.person.hash),))


def know(visit: PageContext, ref: str, stored: str) -> None:
    """Mark the browser as known to this person, whose password has this hash."""
    key = visit.state.token_key
    value = sessions.make_browser_mark(key, ref, stored, visit.now)
    visit.keep_cookie(_cookie(key, ref), value, sessions.MARK_LIFETIME // SECOND)


def _known(visit: PageContext, ref: str, stored: str | None) -> str | None:
    """Id of the browser, if it is known to this person."""
    key = visit.state.token_key
    value = visit.cookie(_cookie(key, ref))
    return sessions.recognize_browser(key, value, ref, stored, visit.now)


def _cookie(key: bytes, ref: str) -> str:
    return f"{cookies.KNOWN}-{sessions.make_mark_name(key, ref)}"


_WRONG = "The name or the password is wrong."


class Proven(NamedTuple):
    """A person who has proven knowledge of the password with this hash."""

    ref: str
    stored: str


async def ask(visit: PageContext) -> Reply:
    """Sign-in form."""
    back = safe_path(visit.query("next"))
    if visit.session is not None:
        return visit.redirect(back)
    return await _form(visit, back)


async def sign_in(visit: PageContext) -> Reply:
    """Sign in with a name and a password."""
    name, back = visit.sent.one("name"), safe_path(visit.sent.raw("next"))
    try:
        proven = await _proven(visit, name, visit.sent.raw("password"))
        check = partial(users.require_password_hash, ref=proven.ref, stored=proven.stored)
        await session.start(visit, proven.ref, "password", check)
    except (InputError, NotFoundError, TooManyRequestsError) as error:
        wrong = error if isinstance(error, TooManyRequestsError) else InputError(_WRONG)
        await _note_refusal(visit, name, wrong)
        status = 429 if wrong is error else 403
        return await _form(visit, back, status, name=name, problem=wrong.message)
    stored = await _renewed(visit, proven, visit.sent.raw("password"))
    know(visit, proven.ref, stored)
    return visit.redirect(back)


async def sign_out(visit: PageContext) -> Reply:
    """End the session."""
    if visit.session is not None:
        await session.end(visit)
    return visit.redirect("/sign-in", "You are signed out.")


async def welcome(visit: PageContext) -> Reply:
    """Page of an invitation: a new account, or a new password."""
    return _welcome(visit, await _invitation(visit))


async def accept(visit: PageContext) -> Reply:
    """Use an invitation, and sign in."""
    invitation, form = await _invitation(visit), visit.sent
    try:
        ref = invitation.ref or invitation.new_ref or users.make_user_ref(form.one("name"))
        password = form.raw("password")
        passwords.check_password(password, ref)
        if password != form.raw("again"):
            raise InputError("The two passwords differ.")
        hashed = await visit.site.slow(passwords.hash_password, password)
        name = form.one("display_name") or ref.removeprefix(users.PREFIX)
        await _use(visit, ref, hashed, name)
    except (InputError, ConflictError) as error:
        shown = {"name": form.one("name"), "display_name": form.one("display_name")}
        return _welcome(visit, invitation, error.status, problem=error.message, **shown)
    await session.start(visit, ref, "invitation")
    know(visit, ref, hashed)
    return visit.redirect("/")


def safe_path(text: str) -> str:
    """Path of this service to continue at; `/` for anything that could lead elsewhere."""
    # After one slash that is not the first of two, nothing is taken for a scheme or a host.
    leads_away = not text.startswith("/") or text.startswith("//") or "\\" in text
    if leads_away or not text.isprintable() or not text.isascii():
        return "/"
    return text


async def _proven(visit: PageContext, name: str, password: str) -> Proven:
    """The person who knows the password; raises InputError, TooManyRequestsError.

    An unknown name takes as long as a wrong password, with the same answer.
    """
    ref = users.make_user_ref(name)
    stored = await users.get_password_hash(visit.state.database, ref)
    tried = at_sign_in(visit, ref, stored)
    async with visit.site.hashing:
        # Here, so that many who come at once are not all let through before the first has failed.
        tried.check()
        fits = await asyncio.to_thread(passwords.matches_password, stored, password)
        if not fits:
            tried.count()
    if not fits or stored is None:
        raise InputError(_WRONG)
    return Proven(ref, stored)


async def _renewed(visit: PageContext, proven: Proven, password: str) -> str:
    """Stored hash of the password, made again if its parameters were outdated."""
    if not passwords.needs_rehash(proven.stored):
        return proven.stored
    hashed = await visit.site.slow(passwords.hash_password, password)
    await visit.state.database.write(lambda tx: users.store_password_hash(tx, proven.ref, hashed))
    return hashed


async def _use(visit: PageContext, ref: str, hashed: str, display_name: str) -> None:
    now, digest = visit.now, _digest(visit)

    def work(transaction: Transaction) -> Invitation:
        invitation = invitations.use_up_invitation(transaction, digest, now)
        if invitation.ref is not None:
            users.set_password(transaction, ref, hashed)
        else:
            _create(transaction, invitation, ref, hashed, display_name, now)
        return invitation

    def about(invitation: Invitation) -> AuditEntry:
        if invitation.ref is not None:
            return AuditEntry("person.change", ref, {"changed": "password"})
        return AuditEntry("person.create", ref, {"role": invitation.role, "by": invitation.made_by})

    await visit.writing(about, actor=ref)(work)


def _create(
    transaction: Transaction,
    invitation: Invitation,
    ref: str,
    hashed: str,
    display_name: str,
    now: int,
) -> None:
    """Store the account of an invitation; raises ConflictError for a name that is somebody's."""
    is_first = invitation.made_by == invitations.FIRST_START
    if invitation.scim_id is None and not is_first:
        identity.check_reserved_name(transaction, ref)
    is_named = invitation.new_ref is not None or is_first
    users.create_user(
        transaction,
        ref=ref,
        display_name=display_name,
        role=invitation.role,
        password=hashed,
        created_by=invitation.made_by,
        now=now,
        proof=users.BY_ADMINISTRATOR if is_named else users.UNPROVEN,
    )
    if invitation.scim_id:
        users.link_account(transaction, invitation.scim_id, ref, invitation.made_by, now)


async def _invitation(visit: PageContext) -> Invitation:
    found = await invitations.find_invitation(visit.state.database, _digest(visit), visit.now)
    if found is None:
        visit.state.failures.take(visit.address)
        raise NotFoundError("This link has been used or has expired. Ask for a new one.")
    return found


def _digest(visit: PageContext) -> str:
    secret = visit.request.parameter("secret")
    return invitations.hash_invitation_secret(secret, visit.state.token_key)


async def _form(
    visit: PageContext, back: str, status: int = 200, *, name: str = "", problem: str | None = None
) -> Reply:
    openid = visit.site.openid
    return visit.page(
        "sign-in.html",
        status,
        next=back,
        name=name,
        problem=problem,
        openid=openid and openid.options.title,
        nobody=not await users.has_users(visit.state.database),
    )


def _welcome(visit: PageContext, invitation: Invitation, status: int = 200, **values: str) -> Reply:
    shown = {"name": "", "display_name": "", "problem": None, **values}
    reply = visit.page("welcome.html", status, invitation=invitation, **shown)
    # The address is a secret: no other page gets to know it. With "no-referrer" browsers would not
    # say either which origin the form comes from, and it would be refused.
    return reply._replace(headers={"referrer-policy": "strict-origin"})


async def _note_refusal(visit: PageContext, name: str, error: FactbookError) -> None:
    visit.recorded = True
    refusals.record_refusal(
        visit.state,
        actor="",
        address=visit.address,
        action="session.start",
        object=await _known_object(visit, name),
        status=error.status,
        detail={"error": error.name},
    )


async def _known_object(visit: PageContext, name: str) -> str:
    """Reference of the person of this name; none for other words, which may be a password."""
    try:
        found = await users.find_user(visit.state.database, users.make_user_ref(name))
    except InputError:
        return ""
    return found.ref if found else ""


SIGNING_IN: Sequence[PageRoute] = (
    PageRoute("GET", "/sign-in", ask, OPEN, for_clients=True),
    PageRoute("POST", "/sign-in", sign_in, OPEN, for_clients=True),
    PageRoute("POST", "/sign-out", sign_out, OPEN),
    PageRoute("GET", urls.WELCOME, welcome, OPEN),
    PageRoute("POST", urls.WELCOME, accept, OPEN),
)
