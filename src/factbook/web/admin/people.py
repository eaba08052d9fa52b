"""Administration → People: accounts, their roles, and the links that create them."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from factbook.audit.trail import About, AuditEntry, Caller
from factbook.auth import group_roles, invitations, permissions, sessions, tokens, users
from factbook.auth.invitations import Invitation
from factbook.auth.oauth import consents
from factbook.auth.permissions import TITLES, TOKEN_MANAGE
from factbook.auth.users import Person
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.http import urls
from factbook.http.requests import Reply
from factbook.scim import identity
from factbook.scim.identity import NewAccount
from factbook.storage import Transaction
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

T = TypeVar("T")

PATH: Final = "/administration/people"
_PERSON: Final = f"{PATH}/{{name}}"
_PAGE = 50
_SESSIONS = 20
_ROLES = [(role, title) for role, title in permissions.ROLE_TITLES.items()]


class PersonRow(NamedTuple):
    """A person, with the number of tokens."""

    person: Person
    tokens: int


async def listed(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Page of all people, and the usable invitations."""
    database, after = visit.state.database, visit.query("after")
    found = await users.list_user_page(database, after, _PAGE + 1)
    shown = found[:_PAGE]
    counts = await tokens.count_tokens_by_owner(database, [person.ref for person in shown])
    return visit.page(
        "people.html",
        status,
        people=[PersonRow(person, counts.get(person.ref, 0)) for person in shown],
        first=PATH if after else None,
        more=f"{PATH}?after={shown[-1].ref}" if len(found) > _PAGE else None,
        invitations=await invitations.list_invitations(database, visit.now),
        roles=permissions.ROLE_TITLES,
        abouts=permissions.ROLE_DESCRIPTIONS,
        problem=problem,
        openid=visit.site.openid and visit.site.openid.options.title,
    )


async def invite(visit: PageContext) -> Reply:
    """Create an invitation, whose link is in this answer alone."""
    role, secret, now = visit.sent.one("role"), invitations.generate_invitation_secret(), visit.now
    digest = invitations.hash_invitation_secret(secret, visit.state.token_key)
    name, confirmed = visit.sent.one("name"), visit.sent.one("confirmed") == "true"
    rules = group_roles.make_group_rules(visit.state.settings)

    def work(transaction: Transaction) -> Invitation:
        ref = users.make_user_ref(name)
        return invitations.create_invitation(
            transaction,
            digest=digest,
            role=role,
            made_by=visit.person.ref,
            now=now,
            lifetime=invitations.INVITATION_LIFETIME,
            new_ref=ref,
            scim_id=identity.check_invitation(transaction, ref, rules, confirmed=confirmed),
        )

    try:
        made = await visit.writing(_invited, 201)(work)
    except (ConflictError, InputError) as error:
        return await listed(visit, error.status, problem=error.message)
    return _link(visit, made, secret)


async def withdraw(visit: PageContext) -> Reply:
    """End an unused invitation."""
    id_ = visit.sent.one("invitation")
    write = visit.writing(AuditEntry("person.withdraw", id_[:16]))
    try:
        await write(lambda transaction: invitations.withdraw_invitation(transaction, id_))
    except NotFoundError as error:
        return await listed(visit, error.status, problem=error.message)
    return visit.redirect(PATH, "The invitation is withdrawn; its link no longer works.")


async def show(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Page of one person."""
    database, ref = visit.state.database, _ref(visit)
    person = await users.find_user(database, ref)
    if person is None:
        raise NotFoundError("There is no person of this name.")
    found = await sessions.list_sessions(database, ref)
    counts = await tokens.count_tokens_by_owner(database, [ref])
    values: dict[str, Any] = {
        "person": person,
        "path": f"{PATH}/{person.name}",
        "tokens": counts.get(ref, 0),
        "sessions": found[:_SESSIONS],
        "session_count": len(found),
        "roles": _ROLES,
        "role": permissions.ROLE_TITLES[person.role],
        "permissions": [title for name, title in TITLES.items() if name in person.permissions],
        "problem": problem,
    }
    return visit.page("people-person.html", status, **values)


async def confirm(visit: PageContext) -> Reply:
    """Confirm that an account is the catalog's user of its name, and a SCIM user's."""
    ref, user_name = _ref(visit), visit.sent.one("user_name")
    rules = group_roles.make_group_rules(visit.state.settings)
    caller = Caller(visit.person.ref, visit.now, visit.address, grant=visit.person.grant)

    return await _changed(
        visit,
        identity.audit_confirmation,
        lambda transaction: identity.confirm_account(transaction, ref, rules, caller, user_name),
        f"{ref} is confirmed: the account has the groups of the catalog's user of its name.",
    )


async def add(visit: PageContext) -> Reply:
    """Create the account of somebody who signs in at the provider, whose name is confirmed."""
    openid = visit.site.openid
    if openid is None:
        raise NotFoundError("No OpenID Connect provider is configured.")
    issuer = openid.options.issuer
    wish = NewAccount(visit.sent.one("new_name"), visit.sent.one("role"), visit.sent.one("subject"))
    rules = group_roles.make_group_rules(visit.state.settings)
    caller = Caller(visit.person.ref, visit.now, visit.address, grant=visit.person.grant)
    try:
        done = await visit.writing(identity.audit_confirmation)(
            lambda transaction: identity.add_account(transaction, wish, issuer, rules, caller)
        )
    except (ConflictError, InputError) as error:
        return await listed(visit, error.status, problem=error.message)
    return visit.redirect(f"{PATH}/{wish.name.lower()}", f"{done.ref} can sign in now.")


async def change_role(visit: PageContext) -> Reply:
    """Change a person's role."""
    ref, role, now = _ref(visit), visit.sent.one("role"), visit.now
    return await _changed(
        visit,
        AuditEntry("person.change", ref, {"changed": "role", "role": role}),
        lambda transaction: users.change_user_role(transaction, ref, role, now),
        f"The role {permissions.ROLE_TITLES.get(role, role)} is given to {ref} now.",
    )


async def disable(visit: PageContext) -> Reply:
    """Disable a person."""
    ref, now = _ref(visit), visit.now
    return await _changed(
        visit,
        AuditEntry("person.change", ref, {"changed": "disabled"}),
        lambda transaction: users.disable_user(transaction, ref, now),
        f"{ref} is disabled: no session and no token of theirs works any more.",
    )


async def enable(visit: PageContext) -> Reply:
    """Enable a person again."""
    ref = _ref(visit)
    return await _changed(
        visit,
        AuditEntry("person.change", ref, {"changed": "enabled"}),
        lambda transaction: users.enable_user(transaction, ref),
        f"{ref} can sign in again. Tokens that were revoked stay revoked.",
    )


async def end_sessions(visit: PageContext) -> Reply:
    """End every session of a person, and every consent that was given in one."""
    ref = _ref(visit)

    def work(transaction: Transaction) -> None:
        sessions.end_sessions_of(transaction, ref)
        consents.end_consents_of(transaction, ref)

    return await _changed(
        visit,
        AuditEntry("session.end", ref, {"session": "all"}),
        work,
        f"{ref} is signed out everywhere.",
    )


async def reset_password(visit: PageContext) -> Reply:
    """Create the link with which a person sets a new password."""
    ref, secret, now = _ref(visit), invitations.generate_invitation_secret(), visit.now
    digest, by = invitations.hash_invitation_secret(secret, visit.state.token_key), visit.person.ref
    entry = AuditEntry("person.change", ref, {"changed": "link to set a password"})
    try:
        made = await visit.writing(entry, 201)(
            lambda transaction: users.create_password_link(
                transaction, ref, digest=digest, made_by=by, now=now
            )
        )
    except (ConflictError, NotFoundError) as error:
        return await show(visit, error.status, problem=error.message)
    return _link(visit, made, secret)


def _invited(made: Invitation) -> AuditEntry:
    return AuditEntry("person.invite", made.id, {"role": made.role, "person": made.new_ref or ""})


async def _changed(
    visit: PageContext, about: AuditEntry | About, work: Callable[[Transaction], T], notice: str
) -> Reply:
    """The person's page after a change, with a notice or the problem."""
    try:
        await visit.writing(about)(work)
    except (ConflictError, InputError, NotFoundError) as error:
        return await show(visit, error.status, problem=error.message)
    return visit.redirect(f"{PATH}/{visit.request.parameter('name')}", notice)


def _ref(visit: PageContext) -> str:
    try:
        return users.make_user_ref(visit.request.parameter("name"))
    except InputError:
        raise NotFoundError("There is no person of this name.") from None


def _link(visit: PageContext, made: Invitation, secret: str) -> Reply:
    link = urls.welcome_link(visit.server, secret)
    return visit.page(
        "people-link.html", 201, invitation=made, link=link, roles=permissions.ROLE_TITLES
    )


_NEEDS: Final = (TOKEN_MANAGE,)
PEOPLE: Sequence[PageRoute] = (
    PageRoute("GET", PATH, listed, _NEEDS),
    PageRoute("POST", f"{PATH}/-/invitations", invite, _NEEDS),
    PageRoute("POST", f"{PATH}/-/withdraw", withdraw, _NEEDS),
    PageRoute("GET", _PERSON, show, _NEEDS),
    PageRoute("POST", f"{PATH}/-/accounts", add, _NEEDS),
    PageRoute("POST", f"{_PERSON}/confirm", confirm, _NEEDS),
    PageRoute("POST", f"{_PERSON}/role", change_role, _NEEDS),
    PageRoute("POST", f"{_PERSON}/password", reset_password, _NEEDS),
    PageRoute("POST", f"{_PERSON}/disable", disable, _NEEDS),
    PageRoute("POST", f"{_PERSON}/enable", enable, _NEEDS),
    PageRoute("POST", f"{_PERSON}/sessions", end_sessions, _NEEDS),
)
