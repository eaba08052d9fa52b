"""Reserved names, proof of ownership of a name, and roles from groups.

Names are reserved for the people of the catalog and of SCIM. Roles come from groups pushed by an
identity provider, and from those of the last sign-in. Catalog groups give no role: anyone allowed
to push a set could add members to them. Names give no role either: an account belongs to a SCIM
user by its subject, or because an administrator confirmed it.
"""

from typing import Final, NamedTuple

import structlog

from factbook.audit.trail import AuditEntry, Caller, append_record, make_record
from factbook.auth import group_roles, permissions, tokens
from factbook.auth import users as auth_users
from factbook.auth.group_roles import GroupRules
from factbook.auth.users import Person, ProvisionedPerson, SignIn
from factbook.catalog.store import stored_entities
from factbook.errors import ConflictError, InputError, NotFoundError, UnavailableError
from factbook.scim import store
from factbook.scim.store import ScimRow
from factbook.storage import Database, Transaction

log = structlog.get_logger("factbook.people")

_AT_START = "start of the service"

_MOST_NAMED: Final = 3
# Limit of OpenID Connect Core 1.0, section 2.
_LONGEST_SUBJECT: Final = 255


def settle_role(transaction: Transaction, ref: str, rules: GroupRules, caller: Caller) -> None:
    """Give a person the role of their current groups, recorded in the audit.

    To be called before any other change of the person in the transaction.
    """
    groups = _list_trusted_groups(transaction, ref, rules) if rules.roles else set[str]()
    change = group_roles.settle_group_role(transaction, ref, rules.highest(groups), caller.at)
    if change is not None:
        by = f"group {change.group}" if change.group else "no group"
        entry = AuditEntry("person.change", ref, {"role": change.role, "by": by})
        append_record(transaction, make_record(caller, entry))


def settle_account_roles(
    transaction: Transaction, users: list[ScimRow], rules: GroupRules, caller: Caller
) -> None:
    """Settle the accounts of these users of the identity provider."""
    accounts = {
        ref
        for row in users
        for ref in auth_users.list_proven_accounts(transaction, make_provisioned_person(row, rules))
    }
    for ref in sorted(accounts):
        settle_role(transaction, ref, rules, caller)


async def settle_all_roles(database: Database, rules: GroupRules, now: int) -> None:
    """Update the roles of all accounts by the current rules; called at process start.

    If the database is not writable now, roles stay until the next start.
    """
    caller = Caller(_AT_START, now)

    def work(transaction: Transaction) -> None:
        for ref in group_roles.list_people_refs(transaction):
            settle_role(transaction, ref, rules, caller)

    try:
        if rules.roles or await group_roles.has_group_roles(database):
            await database.write(work)
    except UnavailableError as error:
        log.warning("roles.unsettled", cause=error.cause)


def _list_trusted_groups(transaction: Transaction, ref: str, rules: GroupRules) -> set[str]:
    """The groups of a person that an identity provider vouches for."""
    subject = auth_users.find_subject(transaction, ref, rules.issuer)
    linked = auth_users.list_linked_users(transaction, ref)
    found = [
        *store.find_users_by_subject(transaction, subject),
        *store.get_rows(transaction, linked).values(),
    ]
    own = {row.id for row in found if row.active}
    return {
        *group_roles.list_claimed_groups(transaction, ref),
        *store.list_group_names(transaction, own),
    }


def make_provisioned_person(row: ScimRow, rules: GroupRules) -> ProvisionedPerson:
    """A SCIM user in the form used to match accounts."""
    return ProvisionedPerson(row.id, rules.issuer, row.external_id, row.name)


class NewAccount(NamedTuple):
    """An account to create for somebody with this subject at the OpenID Connect provider."""

    name: str
    role: str
    subject: str


class UnprovenRole(NamedTuple):
    """The role that an account would get if proven to be a SCIM user's."""

    ref: str
    user_name: str
    role: str
    group: str


class Confirmation(NamedTuple):
    """An account confirmed by an administrator, and its SCIM user, if any.

    `role` is that of an account that was created for it.
    """

    ref: str
    user_name: str = ""
    role: str = ""


def audit_confirmation(done: Confirmation) -> AuditEntry:
    """The audit entry for a confirmation."""
    if done.role:
        detail = {"role": done.role, "by": "administrator", "scimUser": done.user_name}
        return AuditEntry("person.create", done.ref, detail)
    detail = {"changed": "confirmed", "scimUser": done.user_name}
    return AuditEntry("person.change", done.ref, detail)


def find_reservation(transaction: Transaction, ref: str) -> str:
    """The owner of a reference without an account, in words; empty if free."""
    if called := store.find_users_by_name(transaction, ref, ref.removeprefix(auth_users.PREFIX)):
        return f"the SCIM user {called[0].name}"
    if stored_entities.read_ids_of_refs(transaction, [ref]):
        return "a user in the catalog"
    if tokens.has_tokens(transaction, ref):
        return "the owner of a token"
    return ""


def check_invitation(
    transaction: Transaction, ref: str, rules: GroupRules, *, confirmed: bool
) -> str | None:
    """The SCIM user for an invitation to this name: empty without one, None if unconfirmed.

    Raises ConflictError if the account exists, or if the name belongs to someone who is not
    confirmed to be the invited person.
    """
    if auth_users.user_exists(transaction, ref):
        raise ConflictError(f"There is already a person {ref}.")
    if confirmed:
        row = _find_scim_user(transaction, ref, "", rules)
        return row.id if row else ""
    if whose := find_reservation(transaction, ref):
        raise ConflictError(
            f"{ref} is {whose}. Confirm that the invitation is for that person, or choose another "
            "name."
        )
    return None


def check_reserved_name(transaction: Transaction, ref: str) -> None:
    """Raise ConflictError for a name that may belong to another person."""
    if whose := find_reservation(transaction, ref):
        raise ConflictError(
            f"The name {ref.removeprefix(auth_users.PREFIX)} is reserved: it is that of {whose}. "
            "Choose another name, or ask an administrator for an invitation to this one."
        )


def find_proof(transaction: Transaction, ref: str, subject: str, proven_name: str | None) -> str:
    """The proof that a person who signs in at the provider is the user with this reference.

    `proven_name` is the account name at the provider, if the settings trust it.
    """
    if any(row.ref == ref for row in store.find_users_by_subject(transaction, subject)):
        return auth_users.BY_SCIM
    try:
        is_named = proven_name is not None and auth_users.make_user_ref(proven_name) == ref
    except InputError:
        is_named = False
    return auth_users.BY_PROVIDER if is_named else auth_users.UNPROVEN


async def find_ref_by_subject(database: Database, subject: str) -> str:
    """The reference of the SCIM user with this external id; empty without exactly one."""
    found = await store.find_refs_by_subject(database, subject)
    return found[0] if len(found) == 1 else ""


def confirm_account(
    transaction: Transaction,
    ref: str,
    rules: GroupRules,
    caller: Caller,
    user_name: str = "",
) -> Confirmation:
    """Confirm that an account is the catalog's user of its name, and the SCIM user's.

    The SCIM user is found by the given name, or by the account's. The account gets the roles of the
    user's groups. Raises NotFoundError for an unknown account or SCIM user, and ConflictError if
    several users have the name, or another account has the user's subject.
    """
    group_roles.lock_role_changes(transaction)
    if not auth_users.user_exists(transaction, ref):
        raise NotFoundError(f"There is no person {ref}.")
    row = _find_scim_user(transaction, ref, user_name, rules)
    if row is not None:
        auth_users.link_account(transaction, row.id, ref, caller.actor, caller.at)
    settle_role(transaction, ref, rules, caller)
    auth_users.record_proof(transaction, ref, auth_users.BY_ADMINISTRATOR)
    return Confirmation(ref, row.name if row else "")


def add_account(
    transaction: Transaction, wish: NewAccount, issuer: str, rules: GroupRules, caller: Caller
) -> Confirmation:
    """Create an account for a person at the provider, under a name confirmed to be theirs.

    Raises InputError for an invalid name or subject, and the errors of `create_user` and of
    `confirm_account`.
    """
    ref = auth_users.make_user_ref(wish.name)
    group_roles.lock_role_changes(transaction)
    if not wish.subject or len(wish.subject) > _LONGEST_SUBJECT or not wish.subject.isprintable():
        raise InputError(
            f"A subject has 1 to {_LONGEST_SUBJECT} characters: the claim `sub` of the provider."
        )
    auth_users.create_user(
        transaction,
        ref=ref,
        display_name=wish.name,
        role=wish.role or permissions.VIEWER,
        issuer=issuer,
        subject=wish.subject,
        created_by=caller.actor,
        now=caller.at,
    )
    return confirm_account(transaction, ref, rules, caller)._replace(
        role=wish.role or permissions.VIEWER
    )


async def list_unproven_roles(database: Database, rules: GroupRules) -> list[UnprovenRole]:
    """Unproven accounts with the name of a SCIM user in a group with a role, in order."""
    if not rules.roles:
        return []
    links = await auth_users.list_account_links(database)
    accounts = await auth_users.list_sign_ins(database)
    by_name: dict[str, list[SignIn]] = {}
    for one in accounts:
        for name in auth_users.list_sign_in_names(one, rules.issuer):
            by_name.setdefault(name, []).append(one)
    subjects = {one.subject for one in accounts if one.issuer and one.issuer == rules.issuer}
    found = list[UnprovenRole]()
    for group, row in await store.list_active_members(database, rules.roles):
        if row.id in links or (row.external_id and row.external_id in subjects):
            continue
        found += [
            UnprovenRole(one.ref, row.name, rules.roles[group], group)
            for one in by_name.get(row.name_key, ())
        ]
    return found


async def list_unproven_people(database: Database) -> list[Person]:
    """Unconfirmed accounts with the name of a user in the catalog."""
    people = [one for one in await auth_users.list_users(database) if not one.proof]
    known = await stored_entities.filter_known_refs(database, [one.ref for one in people])
    return [one for one in people if one.ref in known and one.disabled_at is None]


def _find_scim_user(
    transaction: Transaction, ref: str, user_name: str, rules: GroupRules
) -> ScimRow | None:
    """The SCIM user of this name, or the one who has the account's name in the catalog or SCIM."""
    if user_name:
        row = store.find_user_by_name(transaction, user_name)
        if row is None:
            raise NotFoundError(f'There is no SCIM user "{user_name[:80]}".')
    else:
        name = ref.removeprefix(auth_users.PREFIX)
        called = store.find_users_by_name(transaction, ref, name)
        # A user who only shares the beginning of the name must be named explicitly.
        exact = [row for row in called if row.ref == ref or row.name_key == name]
        if len(exact) > 1:
            names = ", ".join(row.name for row in exact[:_MOST_NAMED])
            raise ConflictError(f"Several SCIM users may be {ref}: {names}. Name one of them.")
        if not exact:
            return None
        row = exact[0]
    other = auth_users.find_account_of_subject(transaction, rules.issuer, row.external_id)
    if other and other != ref:
        raise ConflictError(f"The SCIM user {row.name} is {other}, by its external id.")
    return row
