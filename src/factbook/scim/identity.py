"""Reserved names: those of the catalog's and SCIM's people, and the proof that one is yours."""

from typing import Final, NamedTuple

from factbook.audit.trail import AuditEntry, Caller
from factbook.auth import group_roles, provider_accounts, roles, tokens, users
from factbook.auth.group_roles import GroupRules
from factbook.auth.provider_accounts import SignIn
from factbook.auth.users import Person
from factbook.catalog.store import collectable
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.scim import role_groups, store
from factbook.scim.store import ScimRow
from factbook.storage import Database, Transaction

_MOST_TOLD: Final = 3
# As OpenID Connect Core 1.0, section 2, limits it.
_LONGEST_SUBJECT: Final = 255


class NewAccount(NamedTuple):
    """An account to create for somebody with this subject at the OpenID Connect provider."""

    name: str
    role: str
    subject: str


class UnprovenRole(NamedTuple):
    """A role that an account would have, if it were proven to be a SCIM user's."""

    ref: str
    user_name: str
    role: str
    group: str


class Confirmation(NamedTuple):
    """Account that an administrator has confirmed, and the SCIM user it belongs to, if any.

    `role` is that of an account that was created for it.
    """

    ref: str
    user_name: str = ""
    role: str = ""


def audited(done: Confirmation) -> AuditEntry:
    """The entry of the audit for a confirmation."""
    if done.role:
        detail = {"role": done.role, "by": "administrator", "scimUser": done.user_name}
        return AuditEntry("person.create", done.ref, detail)
    detail = {"changed": "confirmed", "scimUser": done.user_name}
    return AuditEntry("person.change", done.ref, detail)


def reservation(transaction: Transaction, ref: str) -> str:
    """The owner of a reference without an account, in words; empty if it is free."""
    if called := store.users_called(transaction, ref, ref.removeprefix(users.PREFIX)):
        return f"the SCIM user {called[0].name}"
    if collectable.ids_of(transaction, [ref]):
        return "a user in the catalog"
    if tokens.any_of(transaction, ref):
        return "the owner of a token"
    return ""


def check_invitation(
    transaction: Transaction, ref: str, rules: GroupRules, *, confirmed: bool
) -> str | None:
    """The SCIM user of an invitation to this name, empty for none, None if nobody confirmed it.

    Raises ConflictError if there is an account already, or if the name belongs to somebody who is
    not confirmed to be the invited person.
    """
    if users.is_known(transaction, ref):
        raise ConflictError(f"There is already a person {ref}.")
    if confirmed:
        row = _user(transaction, ref, "", rules)
        return row.id if row else ""
    if whose := reservation(transaction, ref):
        raise ConflictError(
            f"{ref} is {whose}. Confirm that the invitation is for that person, or choose another "
            "name."
        )
    return None


def check_name(transaction: Transaction, ref: str) -> None:
    """Raise ConflictError for a name that belongs to somebody who may be another person."""
    if whose := reservation(transaction, ref):
        raise ConflictError(
            f"The name {ref.removeprefix(users.PREFIX)} is reserved: it is that of {whose}. Choose "
            "another name, or ask an administrator for an invitation to this one."
        )


def proof_of(transaction: Transaction, ref: str, subject: str, proven_name: str | None) -> str:
    """The proof that somebody who signs in at the provider is the user with this reference.

    `proven_name` is the name of the account there, if the settings trust it.
    """
    if any(row.ref == ref for row in store.users_of_subject(transaction, subject)):
        return users.BY_SCIM
    try:
        is_named = proven_name is not None and users.reference(proven_name) == ref
    except InputError:
        is_named = False
    return users.BY_PROVIDER if is_named else users.UNPROVEN


async def ref_of_subject(database: Database, subject: str) -> str:
    """The reference of the SCIM user with this external id; empty without exactly one."""
    found = await store.refs_of_subject(database, subject)
    return found[0] if len(found) == 1 else ""


def confirm(
    transaction: Transaction,
    ref: str,
    rules: GroupRules,
    caller: Caller,
    user_name: str = "",
) -> Confirmation:
    """Confirm that an account is the catalog's user of its name, and the SCIM user's.

    The SCIM user is that of this name, or the one who has the account's. The account gets the
    roles of the user's groups. Raises NotFoundError for an unknown account or SCIM user, and
    ConflictError if several users are called so, or another account has the user's subject.
    """
    group_roles.lock(transaction)
    if not users.is_known(transaction, ref):
        raise NotFoundError(f"There is no person {ref}.")
    row = _user(transaction, ref, user_name, rules)
    if row is not None:
        provider_accounts.link(transaction, row.id, ref, caller.actor, caller.at)
    role_groups.settle(transaction, ref, rules, caller)
    users.prove(transaction, ref, users.BY_ADMINISTRATOR)
    return Confirmation(ref, row.name if row else "")


def add(
    transaction: Transaction, wish: NewAccount, issuer: str, rules: GroupRules, caller: Caller
) -> Confirmation:
    """Create an account for somebody at the provider, under a name that is confirmed to be theirs.

    Raises InputError for an invalid name or subject, and the errors of `users.create` and of
    `confirm`.
    """
    ref = users.reference(wish.name)
    group_roles.lock(transaction)
    if not wish.subject or len(wish.subject) > _LONGEST_SUBJECT or not wish.subject.isprintable():
        raise InputError(
            f"A subject has 1 to {_LONGEST_SUBJECT} characters: the claim `sub` of the provider."
        )
    users.create(
        transaction,
        ref=ref,
        display_name=wish.name,
        role=wish.role or roles.VIEWER,
        issuer=issuer,
        subject=wish.subject,
        created_by=caller.actor,
        now=caller.at,
    )
    return confirm(transaction, ref, rules, caller)._replace(role=wish.role or roles.VIEWER)


async def unproven_roles(database: Database, rules: GroupRules) -> list[UnprovenRole]:
    """Accounts that have the name of a SCIM user in a group with a role, and no proof, in order."""
    if not rules.roles:
        return []
    links = await provider_accounts.links(database)
    accounts = await provider_accounts.sign_ins(database)
    by_name: dict[str, list[SignIn]] = {}
    for one in accounts:
        for name in provider_accounts.names_of(one, rules.issuer):
            by_name.setdefault(name, []).append(one)
    subjects = {one.subject for one in accounts if one.issuer and one.issuer == rules.issuer}
    found = list[UnprovenRole]()
    for group, row in await store.members_called(database, rules.roles):
        if row.id in links or (row.external_id and row.external_id in subjects):
            continue
        found += [
            UnprovenRole(one.ref, row.name, rules.roles[group], group)
            for one in by_name.get(row.name_key, ())
        ]
    return found


async def unproven_people(database: Database) -> list[Person]:
    """Accounts whose name is that of a user in the catalog, and whom nobody has confirmed."""
    people = [one for one in await users.listed(database) if not one.proof]
    known = await collectable.known_refs(database, [one.ref for one in people])
    return [one for one in people if one.ref in known and one.disabled_at is None]


def _user(transaction: Transaction, ref: str, user_name: str, rules: GroupRules) -> ScimRow | None:
    """The SCIM user of this name, or the one who has the account's name in the catalog or SCIM."""
    if user_name:
        row = store.user_named(transaction, user_name)
        if row is None:
            raise NotFoundError(f'There is no SCIM user "{user_name[:80]}".')
    else:
        name = ref.removeprefix(users.PREFIX)
        called = store.users_called(transaction, ref, name)
        # Somebody whose name only begins alike has to be named.
        exact = [row for row in called if row.ref == ref or row.name_key == name]
        if len(exact) > 1:
            names = ", ".join(row.name for row in exact[:_MOST_TOLD])
            raise ConflictError(f"Several SCIM users may be {ref}: {names}. Name one of them.")
        if not exact:
            return None
        row = exact[0]
    other = provider_accounts.account_of_subject(transaction, rules.issuer, row.external_id)
    if other and other != ref:
        raise ConflictError(f"The SCIM user {row.name} is {other}, by its external id.")
    return row
