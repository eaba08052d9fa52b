"""Roles by groups: those that an identity provider has pushed, and those of the last sign-in.

Groups of the catalog give no role: whoever may push a set could make somebody a member of one. Nor
does a name: an account is a SCIM user's by its subject, or because an administrator said so.
"""

import structlog

from factbook.audit import trail
from factbook.audit.trail import AuditEntry, Caller
from factbook.auth import group_roles, provider_accounts
from factbook.auth.group_roles import GroupRules
from factbook.auth.provider_accounts import ProvisionedPerson
from factbook.errors import UnavailableError
from factbook.scim import store
from factbook.scim.store import ScimRow
from factbook.storage import Database, Transaction

log = structlog.get_logger("factbook.people")

_START = "start of the service"


def settle(transaction: Transaction, ref: str, rules: GroupRules, caller: Caller) -> None:
    """Give a person the role of the groups that there are now, recorded in the audit.

    To be called before the transaction changes the person otherwise.
    """
    groups = _groups(transaction, ref, rules) if rules.roles else set[str]()
    change = group_roles.settle(transaction, ref, rules.highest(groups), caller.at)
    if change is not None:
        by = f"group {change.group}" if change.group else "no group"
        entry = AuditEntry("person.change", ref, {"role": change.role, "by": by})
        trail.append(transaction, trail.record(caller, entry))


def settle_accounts(
    transaction: Transaction, users: list[ScimRow], rules: GroupRules, caller: Caller
) -> None:
    """Settle the accounts of these users of the identity provider."""
    accounts = {
        ref
        for row in users
        for ref in provider_accounts.proven_accounts(transaction, provisioned(row, rules))
    }
    for ref in sorted(accounts):
        settle(transaction, ref, rules, caller)


async def settle_everybody(database: Database, rules: GroupRules, now: int) -> None:
    """Settle everybody by the rules, which may be others than before; when a process starts.

    Where the database cannot be written now, roles stay until the next start.
    """
    caller = Caller(_START, now)

    def work(transaction: Transaction) -> None:
        for ref in group_roles.everybody(transaction):
            settle(transaction, ref, rules, caller)

    try:
        if rules.roles or await group_roles.any_given(database):
            await database.write(work)
    except UnavailableError as error:
        log.warning("roles.unsettled", cause=error.cause)


def _groups(transaction: Transaction, ref: str, rules: GroupRules) -> set[str]:
    """The groups of a person, as far as an identity provider vouches for them."""
    subject = provider_accounts.subject_of(transaction, ref, rules.issuer)
    linked = provider_accounts.linked_users(transaction, ref)
    found = [
        *store.users_of_subject(transaction, subject),
        *store.rows_of(transaction, linked).values(),
    ]
    own = {row.id for row in found if row.active}
    return {*group_roles.claimed(transaction, ref), *store.group_names(transaction, own)}


def provisioned(row: ScimRow, rules: GroupRules) -> ProvisionedPerson:
    """A SCIM user as accounts are matched with it."""
    return ProvisionedPerson(row.id, rules.issuer, row.external_id, row.name)
