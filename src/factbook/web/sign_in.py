"""Sign-in with a password or a provider, account invitations, and OAuth consent.

A consent form repeats the whole authorization request, and a submit validates it again. Pages
never redirect to a client before the person clicks a button, because anyone can put their own URL
in a link. Only clients trusted in the settings receive errors without a click (RFC 6749, section
4.1.2.1; RFC 9700, section 4.11.2).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from factbook.audit.trail import AuditEntry, Caller
from factbook.auth import group_roles, invitations, passwords, permissions, sessions, tokens, users
from factbook.auth.invitations import Invitation
from factbook.auth.oauth import clients, consents, protocol
from factbook.auth.oauth.clients import AuthorizationRequest
from factbook.auth.oauth.consents import Consent
from factbook.auth.oauth.protocol import OAuthError
from factbook.auth.oidc import identity as attempts
from factbook.auth.oidc.identity import Identity, choose_role, find_proven_name
from factbook.auth.users import Person
from factbook.clock import SECOND
from factbook.errors import (
    ConflictError,
    FactbookError,
    InputError,
    NotAllowedError,
    NotFoundError,
    SignInError,
    TooManyRequestsError,
)
from factbook.http.admission import RateLimit
from factbook.http.pipeline import record_refusal
from factbook.http.requests import WELCOME_PATH, Reply
from factbook.scim import identity
from factbook.scim import identity as scim_identity
from factbook.storage import Transaction
from factbook.web import pages
from factbook.web.pages import OPEN, PageContext, PageRoute

if TYPE_CHECKING:
    from factbook.auth.oidc.client import OpenID


SessionCheck = Callable[[Transaction], None]


async def start_person_session(
    visit: PageContext, ref: str, how: str, check: SessionCheck | None = None
) -> None:
    """Sign the person in with a new session value.

    `check` can still refuse inside the transaction. Raises NotFoundError if the person isn't
    allowed to sign in.
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


async def end_person_session(visit: PageContext) -> None:
    """Sign the person out."""
    hash_ = visit.person.hash
    write = visit.writing(AuditEntry("session.end", visit.person.ref))
    await write(lambda transaction: sessions.end_session(transaction, hash_))
    visit.session = None
    visit.drop_cookie(pages.SESSION_COOKIE)


_OTHER_WAY = ", or with a browser that you have signed in with before"
# Placeholder for provider sign-ins, where the name is unknown at first.
ELSEWHERE = "openid"


@dataclass(frozen=True)
class Guesses:
    """Guess limits for one request, each with its key; `way` is a hint for the error message."""

    limits: tuple[tuple[RateLimit, str], ...]
    way: str = ""

    def check(self) -> None:
        """Raise TooManyRequestsError if a limit is reached, without counting a guess."""
        if seconds := max(limit.waits(key) for limit, key in self.limits):
            raise TooManyRequestsError(
                f"Too many attempts. Try again in {seconds} seconds{self.way}.",
                retry_after=seconds,
            )

    def count(self) -> None:
        """Count a wrong guess."""
        for limit, key in self.limits:
            limit.take(key)


def limit_sign_in(visit: PageContext, ref: str, stored: str | None) -> Guesses:
    """Limits for a person's password; `stored` is its hash, or None without a password."""
    if (id_ := _recognize_marked_browser(visit, ref, stored)) is not None:
        return Guesses(((visit.site.known_browsers, id_),))
    by_address = (visit.state.failures, visit.address)
    return Guesses((by_address, (visit.site.wrong_passwords, ref)), _OTHER_WAY)


def limit_provider_answers(visit: PageContext) -> Guesses:
    """Limits for provider responses, regardless of the person."""
    if (id_ := _recognize_marked_browser(visit, ELSEWHERE, "")) is not None:
        return Guesses(((visit.site.known_browsers, id_),))
    return Guesses(((visit.state.failures, visit.address),), _OTHER_WAY)


def limit_current_password(visit: PageContext) -> Guesses:
    """Limits for the current password of a signed-in person, separate from sign-in limits."""
    return Guesses(((visit.site.known_browsers, visit.person.hash),))


def mark_browser(visit: PageContext, ref: str, stored: str) -> None:
    """Mark the browser as known for this person and password hash."""
    key = visit.state.token_key
    value = sessions.make_browser_mark(key, ref, stored, visit.now)
    visit.keep_cookie(_make_mark_cookie(key, ref), value, sessions.MARK_LIFETIME // SECOND)


def _recognize_marked_browser(visit: PageContext, ref: str, stored: str | None) -> str | None:
    """Id of the browser if it is known for this person."""
    key = visit.state.token_key
    value = visit.cookie(_make_mark_cookie(key, ref))
    return sessions.recognize_browser(key, value, ref, stored, visit.now)


def _make_mark_cookie(key: bytes, ref: str) -> str:
    return f"{pages.KNOWN_BROWSER_COOKIE}-{sessions.make_mark_name(key, ref)}"


_WRONG_SIGN_IN = "The name or the password is wrong."


class Proven(NamedTuple):
    """A person who entered the right password, and the stored hash."""

    ref: str
    stored: str


async def show_sign_in(visit: PageContext) -> Reply:
    """Show the sign-in form."""
    back = choose_safe_path(visit.query("next"))
    if visit.session is not None:
        return visit.redirect(back)
    return await _show_sign_in_form(visit, back)


async def sign_in_with_password(visit: PageContext) -> Reply:
    """Sign in with a name and a password."""
    name, back = visit.sent.one("name"), choose_safe_path(visit.sent.raw("next"))
    try:
        proven = await _prove_password(visit, name, visit.sent.raw("password"))
        check = partial(users.require_password_hash, ref=proven.ref, stored=proven.stored)
        await start_person_session(visit, proven.ref, "password", check)
    except (InputError, NotFoundError, TooManyRequestsError) as error:
        wrong = error if isinstance(error, TooManyRequestsError) else InputError(_WRONG_SIGN_IN)
        await _record_wrong_sign_in(visit, name, wrong)
        status = 429 if wrong is error else 403
        return await _show_sign_in_form(visit, back, status, name=name, problem=wrong.message)
    stored = await _rehash_if_outdated(visit, proven, visit.sent.raw("password"))
    mark_browser(visit, proven.ref, stored)
    return visit.redirect(back)


async def sign_out(visit: PageContext) -> Reply:
    """Sign the person out, if signed in."""
    if visit.session is not None:
        await end_person_session(visit)
    return visit.redirect("/sign-in", "You are signed out.")


async def show_welcome(visit: PageContext) -> Reply:
    """Show an invitation: create an account, or set a new password."""
    return _render_welcome(visit, await _find_open_invitation(visit))


async def accept_invitation(visit: PageContext) -> Reply:
    """Accept an invitation, and sign in."""
    invitation, form = await _find_open_invitation(visit), visit.sent
    try:
        ref = invitation.ref or invitation.new_ref or users.make_user_ref(form.one("name"))
        password = form.raw("password")
        passwords.check_password(password, ref)
        if password != form.raw("again"):
            raise InputError("The two passwords differ.")
        hashed = await visit.site.slow(passwords.hash_password, password)
        name = form.one("display_name") or ref.removeprefix(users.PREFIX)
        await _use_invitation(visit, ref, hashed, name)
    except (InputError, ConflictError) as error:
        shown = {"name": form.one("name"), "display_name": form.one("display_name")}
        return _render_welcome(visit, invitation, error.status, problem=error.message, **shown)
    await start_person_session(visit, ref, "invitation")
    mark_browser(visit, ref, hashed)
    return visit.redirect("/")


def choose_safe_path(text: str) -> str:
    """A safe local path to redirect to; `/` if `text` could lead to another site."""
    # A path with a single leading slash can't contain a scheme or a host.
    leads_away = not text.startswith("/") or text.startswith("//") or "\\" in text
    if leads_away or not text.isprintable() or not text.isascii():
        return "/"
    return text


async def _prove_password(visit: PageContext, name: str, password: str) -> Proven:
    """Check a name and password; raises InputError, TooManyRequestsError.

    Unknown names take as long as wrong passwords and get the same response.
    """
    ref = users.make_user_ref(name)
    stored = await users.get_password_hash(visit.state.database, ref)
    tried = limit_sign_in(visit, ref, stored)
    async with visit.site.hashing:
        # Inside the semaphore: a burst of guesses can't all pass before the first one fails.
        tried.check()
        fits = await asyncio.to_thread(passwords.matches_password, stored, password)
        if not fits:
            tried.count()
    if not fits or stored is None:
        raise InputError(_WRONG_SIGN_IN)
    return Proven(ref, stored)


async def _rehash_if_outdated(visit: PageContext, proven: Proven, password: str) -> str:
    """The stored password hash, recomputed if its parameters are outdated."""
    if not passwords.needs_rehash(proven.stored):
        return proven.stored
    hashed = await visit.site.slow(passwords.hash_password, password)
    await visit.state.database.write(lambda tx: users.store_password_hash(tx, proven.ref, hashed))
    return hashed


async def _use_invitation(visit: PageContext, ref: str, hashed: str, display_name: str) -> None:
    now, digest = visit.now, _hash_link_secret(visit)

    def work(transaction: Transaction) -> Invitation:
        invitation = invitations.use_up_invitation(transaction, digest, now)
        if invitation.ref is not None:
            users.set_password(transaction, ref, hashed)
        else:
            _create_invited_user(transaction, invitation, ref, hashed, display_name, now)
        return invitation

    def about(invitation: Invitation) -> AuditEntry:
        if invitation.ref is not None:
            return AuditEntry("person.change", ref, {"changed": "password"})
        return AuditEntry("person.create", ref, {"role": invitation.role, "by": invitation.made_by})

    await visit.writing(about, actor=ref)(work)


def _create_invited_user(
    transaction: Transaction,
    invitation: Invitation,
    ref: str,
    hashed: str,
    display_name: str,
    now: int,
) -> None:
    """Create the invited account; raises ConflictError if the name is taken or reserved."""
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


async def _find_open_invitation(visit: PageContext) -> Invitation:
    found = await invitations.find_invitation(
        visit.state.database, _hash_link_secret(visit), visit.now
    )
    if found is None:
        visit.state.failures.take(visit.address)
        raise NotFoundError("This link has been used or has expired. Ask for a new one.")
    return found


def _hash_link_secret(visit: PageContext) -> str:
    secret = visit.request.parameter("secret")
    return invitations.hash_invitation_secret(secret, visit.state.token_key)


async def _show_sign_in_form(
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


def _render_welcome(
    visit: PageContext, invitation: Invitation, status: int = 200, **values: str
) -> Reply:
    shown = {"name": "", "display_name": "", "problem": None, **values}
    reply = visit.page("welcome.html", status, invitation=invitation, **shown)
    # The URL is a secret: keep it from other pages. With "no-referrer", browsers would also omit
    # the form's origin, and the submit would be refused.
    return reply._replace(headers={"referrer-policy": "strict-origin"})


async def _record_wrong_sign_in(visit: PageContext, name: str, error: FactbookError) -> None:
    visit.recorded = True
    record_refusal(
        visit.state,
        actor="",
        address=visit.address,
        action="session.start",
        object=await _find_refused_person(visit, name),
        status=error.status,
        detail={"error": error.name},
    )


async def _find_refused_person(visit: PageContext, name: str) -> str:
    """Reference of the named person; '' for unknown names, which could be passwords."""
    try:
        found = await users.find_user(visit.state.database, users.make_user_ref(name))
    except InputError:
        return ""
    return found.ref if found else ""


SIGNING_IN: Sequence[PageRoute] = (
    PageRoute("GET", "/sign-in", show_sign_in, OPEN, for_clients=True),
    PageRoute("POST", "/sign-in", sign_in_with_password, OPEN, for_clients=True),
    PageRoute("POST", "/sign-out", sign_out, OPEN),
    PageRoute("GET", WELCOME_PATH, show_welcome, OPEN),
    PageRoute("POST", WELCOME_PATH, accept_invitation, OPEN),
)


_OPENID_PATH = "/sign-in/openid"
_NEXT_COOKIE = "factbook-next"


async def begin_openid(visit: PageContext) -> Reply:
    """Redirect to the provider, which redirects back to `finish_openid`."""
    provider = _get_provider(visit)
    limit_provider_answers(visit).check()
    try:
        url, attempt = await provider.begin(_make_callback_address(visit))
    except SignInError as error:
        return await _refuse_openid(visit, error)
    seconds = attempts.ATTEMPT_LIFETIME // SECOND
    visit.keep_cookie(
        pages.ATTEMPT_COOKIE, attempts.seal_attempt(attempt, visit.state.token_key), seconds
    )
    visit.keep_cookie(
        _NEXT_COOKIE, pages.pack_cookie_text(choose_safe_path(visit.query("next"))), seconds
    )
    return Reply(status=303, headers={"location": url}, content_type=b"text/plain")


async def finish_openid(visit: PageContext) -> Reply:
    """Sign in the person that the provider authenticated."""
    provider = _get_provider(visit)
    limit_provider_answers(visit).check()
    sealed = visit.cookie(pages.ATTEMPT_COOKIE)
    back = choose_safe_path(pages.unpack_cookie_text(visit.cookie(_NEXT_COOKIE) or ""))
    visit.drop_cookie(pages.ATTEMPT_COOKIE)
    visit.drop_cookie(_NEXT_COOKIE)
    attempt = attempts.open_attempt(sealed or "", visit.state.token_key, visit.now)
    try:
        if attempt is None:
            raise SignInError(
                "This sign-in took too long or was started elsewhere. Start it again."
            )
        query = dict(visit.request.query)
        identity = await provider.finish(attempt, query, _make_callback_address(visit))
        person = await _find_or_create_person(visit, provider, identity)
        await visit.state.database.write(
            partial(_record_identity, visit, provider, person, identity)
        )
        await start_person_session(visit, person.ref, "openid")
        mark_browser(visit, ELSEWHERE, "")
    except SignInError as error:
        return await _refuse_openid(visit, error)
    except NotFoundError:
        refused = "This account may not sign in. Ask an administrator whether it is disabled."
        return await _refuse_openid(visit, SignInError(refused))
    return visit.redirect(back)


def _record_identity(
    visit: PageContext,
    provider: "OpenID",
    person: Person,
    identity: Identity,
    transaction: Transaction,
) -> None:
    """Record the login at the provider, proof of identity, and groups that grant a role."""
    users.record_login(transaction, person.ref, identity.login or "")
    if person.proof == users.UNPROVEN:
        name = find_proven_name(identity, provider.options)
        if proof := scim_identity.find_proof(transaction, person.ref, identity.subject, name):
            users.record_proof(transaction, person.ref, proof)
    rules = group_roles.make_group_rules(visit.state.settings)
    group_roles.record_claimed_groups(transaction, person.ref, identity.groups, rules)


async def _find_or_create_person(
    visit: PageContext, provider: "OpenID", identity: Identity
) -> Person:
    """Find the person with this provider account, or create the person."""
    database = visit.state.database
    role = choose_role(identity, provider.options)
    found = await users.find_user_by_subject(database, identity.issuer, identity.subject)
    if found is None:
        return await _create_person(visit, provider, identity, role)
    if role == permissions.ADMINISTRATOR and found.role != role and found.disabled_at is None:
        # Administrators at the provider become administrators here.
        entry = AuditEntry("person.change", found.ref, {"role": role, "by": "OpenID Connect"})
        write = visit.writing(entry, actor=found.ref)
        await write(lambda tx: users.change_user_role(tx, found.ref, role, visit.now))
    return found


async def _create_person(
    visit: PageContext, provider: "OpenID", identity: Identity, role: str | None
) -> Person:
    if role is None:
        raise SignInError("This account is not known here; ask an administrator to add it.")
    trusted = find_proven_name(identity, provider.options)
    try:
        # SCIM identifies people by subject; the same name could be someone else.
        own = await scim_identity.find_ref_by_subject(visit.state.database, identity.subject)
        ref = own or users.make_user_ref(identity.name)

        def work(transaction: Transaction) -> Person:
            proof = scim_identity.find_proof(transaction, ref, identity.subject, trusted)
            if not proof and scim_identity.find_reservation(transaction, ref):
                raise SignInError(
                    f"The name {ref.removeprefix(users.PREFIX)} is reserved, and nothing proves "
                    "that it is yours. Ask an administrator to add your account on the page "
                    f"People. Its subject is {identity.subject}"
                )
            return users.create_user(
                transaction,
                ref=ref,
                display_name=identity.display_name or identity.name,
                role=role,
                issuer=identity.issuer,
                subject=identity.subject,
                created_by="OpenID Connect",
                now=visit.now,
                proof=proof,
            )

        entry = AuditEntry("person.create", ref, {"role": role, "by": "OpenID Connect"})
        return await visit.writing(entry, actor=ref)(work)
    except InputError:
        raise SignInError(
            "The sign-in provider sent no valid name for this account. "
            "Ask an administrator to check it."
        ) from None
    except ConflictError:
        name = ref.removeprefix(users.PREFIX)
        raise SignInError(
            f"Someone else is called {name} here; ask an administrator to resolve it."
        ) from None


def _get_provider(visit: PageContext) -> "OpenID":
    if visit.site.openid is None:
        raise NotFoundError("No OpenID Connect provider is configured.")
    return visit.site.openid


def _make_callback_address(visit: PageContext) -> str:
    return f"{visit.server}{_OPENID_PATH}/callback"


async def _refuse_openid(visit: PageContext, error: SignInError) -> Reply:
    limit_provider_answers(visit).count()
    record_refusal(
        visit.state,
        actor="",
        address=visit.address,
        action="session.start",
        object="",
        status=error.status,
        detail={"error": error.name, "how": "openid"},
    )
    return visit.page("sign-in-refused.html", error.status, problem=error.message)


SIGNING_IN_ELSEWHERE: Sequence[PageRoute] = (
    PageRoute("GET", _OPENID_PATH, begin_openid, OPEN, for_clients=True),
    PageRoute("GET", f"{_OPENID_PATH}/callback", finish_openid, OPEN, for_clients=True),
)


_CREATED = 201


async def ask_for_consent(visit: PageContext) -> Reply:
    """Show the consent page for a client request."""
    _require_oauth(visit)
    if len(visit.request.url) > clients.LONGEST_REQUEST:
        return _refuse_consent(visit, OAuthError("The client's request is too long."))
    try:
        given = clients.collect_parameters(visit.request.query)
    except OAuthError as error:
        return _refuse_consent(visit, error)
    wish = await _check_consent_request(visit, given)
    return (
        _show_consent_question(visit, wish, given)
        if isinstance(wish, AuthorizationRequest)
        else wish
    )


async def decide_consent(visit: PageContext) -> Reply:
    """Give or deny consent, and send the browser back to the client."""
    _require_oauth(visit)
    given = visit.sent.values()
    wish = await _check_consent_request(visit, given)
    if not isinstance(wish, AuthorizationRequest):
        return wish
    if visit.sent.one("decision") != "allow":
        return _return_to_client(visit, wish, error="access_denied")
    code = tokens.generate_token()
    await _give_consent(visit, wish, tokens.hash_token(code, visit.state.token_key))
    return _return_to_client(visit, wish, code=code)


async def _check_consent_request(
    visit: PageContext, given: Mapping[str, str]
) -> AuthorizationRequest | Reply:
    """Validate a request: returns the parsed request, or an error response."""
    uri, trusted = "", False
    try:
        client = await clients.find_client(
            given.get("client_id", ""),
            visit.state.oauth,
            visit.state.database,
            visit.site.documents,
        )
        uri = clients.check_answer_address(client, given)
        trusted = client.is_trusted(visit.state.oauth)
        return clients.check_authorization_request(client, uri, given, visit.server)
    except OAuthError as error:
        refused = _refuse_consent(visit, error, uri, given.get("state", ""))
        if not trusted:
            return refused
        address = _make_answer_address(
            visit, uri, given.get("state", ""), **_describe_oauth_error(error)
        )
        if visit.request.method == "POST":  # form submits can't redirect to other hosts
            return refused._replace(headers={**refused.headers, **_make_refresh_headers(address)})
        headers = {"location": address, "referrer-policy": "no-referrer"}
        return Reply(status=303, headers=headers, content_type=b"text/plain")


async def _give_consent(visit: PageContext, wish: AuthorizationRequest, code: str) -> None:
    ref, now, client = visit.person.ref, visit.now, wish.client

    def work(transaction: Transaction) -> Consent:
        permissions = wish.permissions & (
            users.get_user_permissions(transaction, ref) or frozenset()
        )
        if not permissions:
            raise NotAllowedError("Your role allows none of what the client asks for.")
        if client.known == "registration":
            clients.record_registration_use(transaction, client.id, now)
        consent = Consent(
            id="",
            person=ref,
            client=client.id,
            client_name=client.name,
            redirect_uri=wish.redirect_uri,
            audience=wish.resource,
            permissions=permissions,
            created_at=now,
            last_used_at=None,
            ends_at=now,
        )
        return consents.give_consent(transaction, consent, code, wish.challenge)

    def about(made: Consent) -> AuditEntry:
        detail = {
            "client": made.client,
            "name": made.client_name,
            "host": clients.extract_redirect_host(made.redirect_uri),
            "permissions": sorted(made.permissions),
        }
        return AuditEntry("consent.give", made.id, detail)

    await visit.writing(about, _CREATED)(work)


def _show_consent_question(
    visit: PageContext, wish: AuthorizationRequest, given: Mapping[str, str]
) -> Reply:
    held = visit.person.permissions
    asked = [
        (name, words) for name, words in protocol.SCOPE_WORDS.items() if name in wish.permissions
    ]
    return visit.page(
        "consent.html",
        client=wish.client,
        client_host=clients.extract_redirect_host(wish.client.id)
        if wish.client.known == "document"
        else "",
        host=clients.extract_redirect_host(wish.redirect_uri),
        is_local=clients.is_loopback_redirect(wish.redirect_uri)
        or clients.is_private_use_redirect(wish.redirect_uri),
        resource=wish.resource,
        given=[each for each in asked if each[0] in held],
        lacking=[each for each in asked if each[0] not in held],
        fields={name: value for name, value in given.items() if name in clients.PARAMETERS},
        action=protocol.AUTHORIZE_PATH,
    )


def _return_to_client(visit: PageContext, wish: AuthorizationRequest, **values: str) -> Reply:
    """Return to the client with a refresh header: form submits can't redirect to other hosts."""
    uri = _make_answer_address(visit, wish.redirect_uri, wish.state, **values)
    reply = visit.page(
        "consent-done.html",
        _CREATED if "code" in values else 200,
        allowed="code" in values,
        client=wish.client,
        host=clients.extract_redirect_host(wish.redirect_uri),
        address=uri,
    )
    return reply._replace(headers={**reply.headers, **_make_refresh_headers(uri)})


def _make_refresh_headers(address: str) -> dict[str, str]:
    return {"refresh": f"0; url={address}", "referrer-policy": "no-referrer"}


def _describe_oauth_error(error: OAuthError) -> dict[str, str]:
    return {"error": error.code, "error_description": error.message}


def _refuse_consent(visit: PageContext, error: OAuthError, uri: str = "", state: str = "") -> Reply:
    """Error page, with a link back to the client if its redirect URI is valid."""
    return visit.page(
        "consent-refused.html",
        error.status,
        problem=error.message,
        host=clients.extract_redirect_host(uri) if uri else "",
        address=_make_answer_address(visit, uri, state, **_describe_oauth_error(error))
        if uri
        else "",
    )


def _make_answer_address(visit: PageContext, uri: str, state: str, **values: str) -> str:
    # The issuer tells clients of several servers which one responded (RFC 9207).
    issuer = protocol.build_issuer(visit.server)
    return clients.build_answer_address(uri, **values, state=state, iss=issuer)


def _require_oauth(visit: PageContext) -> None:
    if not visit.state.oauth.issues:
        raise NotFoundError("OAuth is not offered here.")


CONSENT: Sequence[PageRoute] = (
    PageRoute("GET", protocol.AUTHORIZE_PATH, ask_for_consent, for_clients=True),
    PageRoute("POST", protocol.AUTHORIZE_PATH, decide_consent, for_clients=True),
)
