"""Accounts that nothing proves to be somebody's, though they have the name."""

from collections.abc import AsyncIterator, Iterable
from typing import Final

from factbook.auth import group_roles, users
from factbook.errors import ConfigurationError
from factbook.operations.doctor.findings import Finding, problem, warning
from factbook.scim import identity
from factbook.settings import Settings
from factbook.storage import Database

TOPIC: Final = "people"
_MOST_NAMED: Final = 50
_CONFIRM: Final = "If the account is theirs, run `factbook people confirm {}`."


async def people(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    """Findings on accounts that lack a role or groups until an administrator confirms them."""
    try:
        rules = group_roles.make_group_rules(settings)
    except ConfigurationError as error:
        yield problem(TOPIC, error.message, "Correct the table [group_roles].")
        return
    for one in (await identity.list_unproven_roles(database, rules))[:_MOST_NAMED]:
        name = one.ref.removeprefix(users.PREFIX)
        yield warning(
            TOPIC,
            f"{one.ref} does not get the role {one.role} of the group {one.group}: nothing proves "
            f"that the account belongs to the SCIM user {one.user_name}.",
            _CONFIRM.format(f"{name} --user-name {one.user_name}"),
        )
    unproven = await identity.list_unproven_people(database)
    without = [one.name for one in unproven if one.proof is not None]
    older = [one.name for one in unproven if one.proof is None]
    if without:
        yield warning(
            TOPIC,
            "These accounts have the name of a user in the catalog, and not the user's groups: "
            f"{_names(without)}.",
            _CONFIRM.format("NAME"),
        )
    if older:
        yield warning(
            TOPIC,
            "These accounts keep the groups of the user in the catalog whose name they have, "
            f"though nobody has confirmed them: {_names(older)}.",
            f"{_CONFIRM.format('NAME')} Otherwise disable it on the page People.",
        )


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
    return ", ".join(listed[:_MOST_NAMED]) + more
