"""Sign-in with the account of an OpenID Connect provider."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from factbook.audit.trail import AuditEntry
from factbook.auth import group_roles, permissions, users
from factbook.auth.oidc import identity as attempts
from factbook.auth.oidc.identity import Identity, choose_role, find_proven_name
from factbook.auth.users import Person
from factbook.clock import SECOND
from factbook.errors import ConflictError, InputError, NotFoundError, SignInError
from factbook.http import refusals
from factbook.http.requests import Reply
from factbook.scim import identity as scim_identity
from factbook.storage import Transaction
from factbook.web.sign_in import password_sign_in
from factbook.web.sign_in.password_sign_in import safe_path
from factbook.web.site import cookies, session
from factbook.web.site.endpoint import OPEN, PageRoute
from factbook.web.site.page_context import PageContext

if TYPE_CHECKING:
    from factbook.auth.oidc.client import OpenID

_PATH = "/sign-in/openid"
_NEXT = "factbook-next"


async def begin(visit: PageContext) -> Reply:
    """Redirect to the provider, which sends the person back to `finish`."""
    provider = _provider(visit)
    password_sign_in.elsewhere(visit).check()
    try:
        url, attempt = await provider.begin(_back(visit))
    except SignInError as error:
        return await _refused(visit, error)
    seconds = attempts.ATTEMPT_LIFETIME // SECOND
    visit.keep_cookie(
        cookies.ATTEMPT, attempts.seal_attempt(attempt, visit.state.token_key), seconds
    )
    visit.keep_cookie(_NEXT, cookies.packed(safe_path(visit.query("next"))), seconds)
    return Reply(status=303, headers={"location": url}, content_type=b"text/plain")


async def finish(visit: PageContext) -> Reply:
    """Sign in the person whom the provider has authenticated."""
    provider = _provider(visit)
    password_sign_in.elsewhere(visit).check()
    sealed = visit.cookie(cookies.ATTEMPT)
    back = safe_path(cookies.unpacked(visit.cookie(_NEXT) or ""))
    visit.drop_cookie(cookies.ATTEMPT)
    visit.drop_cookie(_NEXT)
    attempt = attempts.open_attempt(sealed or "", visit.state.token_key, visit.now)
    try:
        if attempt is None:
            raise SignInError(
                "This sign-in took too long or was started elsewhere. Start it again."
            )
        query = dict(visit.request.query)
        identity = await provider.finish(attempt, query, _back(visit))
        person = await _person(visit, provider, identity)
        await visit.state.database.write(partial(_note, visit, provider, person, identity))
        await session.start(visit, person.ref, "openid")
        password_sign_in.know(visit, password_sign_in.ELSEWHERE, "")
    except SignInError as error:
        return await _refused(visit, error)
    except NotFoundError:
        return await _refused(visit, SignInError("This account may not sign in."))
    return visit.redirect(back)


def _note(
    visit: PageContext,
    provider: "OpenID",
    person: Person,
    identity: Identity,
    transaction: Transaction,
) -> None:
    """Record what the provider calls the account, what that proves, and groups that give a role."""
    users.record_login(transaction, person.ref, identity.login or "")
    if person.proof == users.UNPROVEN:
        name = find_proven_name(identity, provider.options)
        if proof := scim_identity.find_proof(transaction, person.ref, identity.subject, name):
            users.record_proof(transaction, person.ref, proof)
    rules = group_roles.make_group_rules(visit.state.settings)
    group_roles.record_claimed_groups(transaction, person.ref, identity.groups, rules)


async def _person(visit: PageContext, provider: "OpenID", identity: Identity) -> Person:
    """The person of the account: an existing one, or a new one."""
    database = visit.state.database
    role = choose_role(identity, provider.options)
    found = await users.find_user_by_subject(database, identity.issuer, identity.subject)
    if found is None:
        return await _new_person(visit, provider, identity, role)
    if role == permissions.ADMINISTRATOR and found.role != role and found.disabled_at is None:
        # Whom the provider counts among the administrators is one from now on.
        entry = AuditEntry("person.change", found.ref, {"role": role, "by": "OpenID Connect"})
        write = visit.writing(entry, actor=found.ref)
        await write(lambda tx: users.change_user_role(tx, found.ref, role, visit.now))
    return found


async def _new_person(
    visit: PageContext, provider: "OpenID", identity: Identity, role: str | None
) -> Person:
    if role is None:
        raise SignInError("This account is not known here; ask an administrator to add it.")
    trusted = find_proven_name(identity, provider.options)
    try:
        # SCIM knows people by their subject. A name alone may be somebody else's.
        own = await scim_identity.find_ref_by_subject(visit.state.database, identity.subject)
        ref = own or users.make_user_ref(identity.name)

        def work(transaction: Transaction) -> Person:
            proof = scim_identity.find_proof(transaction, ref, identity.subject, trusted)
            if not proof and scim_identity.find_reservation(transaction, ref):
                raise _unproven(ref, identity)
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
            "The provider sends no name for this account that is valid here."
        ) from None
    except ConflictError:
        name = ref.removeprefix(users.PREFIX)
        raise SignInError(
            f"Someone else is called {name} here; ask an administrator to resolve it."
        ) from None


def _unproven(ref: str, identity: Identity) -> SignInError:
    name = ref.removeprefix(users.PREFIX)
    return SignInError(
        f"The name {name} is reserved, and nothing proves that it is yours. Ask an administrator "
        f"to add your account on the page People. Its subject is {identity.subject}"
    )


def _provider(visit: PageContext) -> "OpenID":
    if visit.site.openid is None:
        raise NotFoundError("No OpenID Connect provider is configured.")
    return visit.site.openid


def _back(visit: PageContext) -> str:
    return f"{visit.server}{_PATH}/callback"


async def _refused(visit: PageContext, error: SignInError) -> Reply:
    password_sign_in.elsewhere(visit).count()
    refusals.record_refusal(
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
    PageRoute("GET", _PATH, begin, OPEN, for_clients=True),
    PageRoute("GET", f"{_PATH}/callback", finish, OPEN, for_clients=True),
)
