"""Roles that members of identity provider groups get from a setting.

The highest role counts, whether assigned to the person or to a group. If a person's role drops,
their tokens and consents lose permissions in the same transaction, as after a manual change.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Final, NamedTuple

import msgspec

from factbook.auth import invitations, permissions, tokens
from factbook.auth.oauth import consents
from factbook.errors import NotFoundError
from factbook.settings import Settings
from factbook.settings.option_tables import about, read_option_table
from factbook.storage import Database, Transaction

_groups_decoder: Final = msgspec.json.Decoder(list[str])


class GroupRoleOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the table `[group_roles]`: the groups of each role."""

    administrator: Annotated[
        list[str], about("Groups of which each member is an administrator.")
    ] = []
    operator: Annotated[list[str], about("Groups of which each member is an operator.")] = []
    editor: Annotated[list[str], about("Groups of which each member is an editor.")] = []


class GroupRole(NamedTuple):
    """A role and the group that grants it."""

    role: str
    group: str


class GroupRules(NamedTuple):
    """Roles by group, and the sign-in issuer, if any."""

    roles: Mapping[str, str] = {}
    issuer: str | None = None

    def named(self, groups: Iterable[str]) -> list[str]:
        """Filter and sort the groups that grant a role."""
        return sorted(set(groups) & self.roles.keys())

    def highest(self, groups: Iterable[str]) -> GroupRole | None:
        """The highest role that any of these groups grants."""
        found = [GroupRole(self.roles[name], name) for name in self.named(groups)]
        return max(found, key=lambda one: permissions.ROLE_RANKS[one.role], default=None)


class RoleChange(NamedTuple):
    """A person's new role and the group that grants it; an empty group if none does."""

    ref: str
    role: str
    group: str


class StoredRole(NamedTuple):
    """Stored roles of a person: the effective role, the assigned role, and the granting group."""

    role: str
    given: str | None
    group: str | None

    @property
    def of_group(self) -> GroupRole | None:
        """The role from a group, if it is higher than the assigned role."""
        return None if self.group is None else GroupRole(self.role, self.group)


def make_group_rules(settings: Settings) -> GroupRules:
    """Build rules from the settings; raises ConfigurationError naming the option, not its value."""
    issuer = settings.openid.get("issuer") if settings.openid else None
    if not settings.group_roles:
        return GroupRules({}, issuer)
    table = read_option_table("group_roles", "group_roles", settings.group_roles, GroupRoleOptions)
    named: dict[str, list[str]] = msgspec.structs.asdict(table)
    # A group listed for several roles gets the highest, which comes last.
    rising = sorted(named, key=permissions.ROLE_RANKS.__getitem__)
    return GroupRules({group: role for role in rising for group in named[role]}, issuer)


def record_claimed_groups(
    transaction: Transaction, ref: str, groups: Iterable[str], rules: GroupRules
) -> None:
    """Record the groups that the provider reported at sign-in, if they grant a role."""
    named = rules.named(groups)
    text = msgspec.json.encode(named).decode() if named else None
    transaction.run("UPDATE people SET claimed_groups = ? WHERE ref = ?", (text, ref))


def list_claimed_groups(transaction: Transaction, ref: str) -> list[str]:
    """List the groups recorded at the last sign-in."""
    row = transaction.one("SELECT claimed_groups FROM people WHERE ref = ?", (ref,))
    return _groups_decoder.decode(row[0]) if row and row[0] else []


async def has_group_roles(database: Database) -> bool:
    """True if any person has a role from a group."""
    query = "SELECT 1 FROM people WHERE role_group IS NOT NULL LIMIT 1"
    return await database.one(query) is not None


def list_people_refs(transaction: Transaction) -> list[str]:
    """List the references of all people, sorted."""
    return [row[0] for row in transaction.all("SELECT ref FROM people ORDER BY ref")]


def settle_group_role(
    transaction: Transaction, ref: str, found: GroupRole | None, now: int
) -> RoleChange | None:
    """Apply or remove a person's role from a group; returns None if the role stays the same.

    Call this before the transaction changes the person in other ways.
    """
    before = _read_stored_role(transaction, ref)
    if before == _combine_roles(before.given or before.role, found):
        return None
    lock_role_changes(transaction)
    standing = _read_stored_role(transaction, ref)
    given = standing.given or standing.role
    wanted = _combine_roles(given, found)
    _store_role(transaction, ref, wanted, now)
    if wanted.role == standing.role:
        return None
    return RoleChange(ref, wanted.role, wanted.group or "")


def give_role(transaction: Transaction, ref: str, role: str, now: int) -> None:
    """Assign a role to a person; a higher role from a group still counts.

    Raises NotFoundError for an unknown person.
    """
    _store_role(
        transaction, ref, _combine_roles(role, _read_stored_role(transaction, ref).of_group), now
    )


def lock_role_changes(transaction: Transaction) -> None:
    """Serialize role changes; always takes the locks in the same order.

    Call this before changing any row of people, or two transactions could deadlock.
    """
    transaction.lock("administrators")
    invitations.lock_invitations(transaction)


def _combine_roles(given: str, found: GroupRole | None) -> StoredRole:
    if found is None or permissions.ROLE_RANKS[found.role] <= permissions.ROLE_RANKS[given]:
        return StoredRole(given, None, None)
    return StoredRole(found.role, given, found.group)


def _read_stored_role(transaction: Transaction, ref: str) -> StoredRole:
    row = transaction.one("SELECT role, given_role, role_group FROM people WHERE ref = ?", (ref,))
    if row is None:
        raise NotFoundError(f"There is no person {ref}.")
    return StoredRole(*row)


def _store_role(transaction: Transaction, ref: str, wanted: StoredRole, now: int) -> None:
    """Store the role and revoke tokens, consents and invitations that exceed it."""
    if wanted.role != permissions.ADMINISTRATOR:
        invitations.withdraw_invitations_by(transaction, ref)
    transaction.run(
        "UPDATE people SET role = ?, given_role = ?, role_group = ? WHERE ref = ?", (*wanted, ref)
    )
    allowed = permissions.ROLES[wanted.role]
    tokens.trim_tokens(transaction, ref, allowed, now)
    consents.trim_consents(transaction, ref, allowed)
