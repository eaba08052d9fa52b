"""Question whether a person may write a check or scorecard, by a permission or as its owner."""

from factbook.catalog import people_trust
from factbook.checks.definitions import definition_writes
from factbook.checks.definitions.definition_versions import StagedDefinition
from factbook.web.site.page_context import PageContext


async def may_write(visit: PageContext, stored: StagedDefinition, needed: str) -> bool:
    """True if the person has the permission, or groups of the person own it."""
    if not visit.may_own(needed):
        return visit.may(needed)
    found = definition_writes.list_staged_owners(stored)
    groups = await people_trust.read_groups(
        visit.state.database, visit.person.ref, visit.state.trust
    )
    return bool(found) and found <= groups


def may_define(visit: PageContext, needed: str) -> bool:
    """True if the person has the permission, or may define some for the own groups."""
    return visit.may(needed) or visit.may_own(needed)
