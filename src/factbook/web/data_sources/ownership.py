"""Data sources that a person manages because groups of the person own them."""

from collections.abc import Mapping, Sequence

from factbook.audit.trail import About, AuditEntry
from factbook.auth.permissions import SOURCE_WRITE
from factbook.catalog import people_trust
from factbook.datasources import define
from factbook.datasources.custom.definition import OWNED_TYPES
from factbook.datasources.define import ConnectionDetail, OwnedSource
from factbook.datasources.stores import StoredSource
from factbook.storage import Write
from factbook.web.data_sources import source_labels
from factbook.web.site.page_context import PageContext


def writing(
    visit: PageContext, source_id: str, about: AuditEntry | About, needed: str = SOURCE_WRITE
) -> Write:
    """Transaction runner that records the person; for owners, it looks whose the source is."""
    if not visit.own_only:
        return visit.writing(about)
    owned = _owned(visit, source_id, needed)
    return owned.guarding(visit.writing(owned.told(about)))


def guarding(visit: PageContext, source_id: str) -> Write:
    """Transaction runner that records nothing; for owners, it looks whose the source is."""
    write = visit.state.database.write
    return _owned(visit, source_id).guarding(write) if visit.own_only else write


async def may(visit: PageContext, stored: StoredSource | None, needed: str) -> bool:
    """True if the person has the permission, or groups of the person own the source."""
    if visit.may(needed):
        return True
    if stored is None or not visit.may_own(needed):
        return False
    person, trust = visit.person.ref, visit.state.trust
    return await define.is_own_source(visit.state.database, stored, person, trust, needed)


async def groups(visit: PageContext) -> frozenset[str]:
    """The groups that the person is a member of."""
    return await people_trust.read_groups(visit.state.database, visit.person.ref, visit.state.trust)


def types(visit: PageContext) -> Mapping[str, tuple[str, str]]:
    """The types that a source of the person may have, each with its title and what it is."""
    if not visit.own_only:
        return source_labels.TYPES
    return {name: about for name, about in source_labels.TYPES.items() if name in OWNED_TYPES}


async def usable(visit: PageContext) -> Sequence[ConnectionDetail]:
    """The connections that a source of the person may ask."""
    state = visit.state
    if visit.own_only:
        return await define.list_shared_connections(
            state.database, state.registry, visit.person.ref, state.trust
        )
    return await define.list_connections(state.database, state.registry)


def _owned(visit: PageContext, source_id: str, needed: str = SOURCE_WRITE) -> OwnedSource:
    configured = visit.state.registry.configured
    return OwnedSource(source_id, visit.person.ref, visit.state.trust, configured, needed)
