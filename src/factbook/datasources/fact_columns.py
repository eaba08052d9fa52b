"""Facts across the catalog: the fact that a caller names, and the part of the catalog."""

from typing import Final

from factbook.catalog import ref as refs
from factbook.catalog.store import affiliation
from factbook.catalog.store.affiliation import CatalogPart
from factbook.datasources.define import known
from factbook.datasources.registry import Registry
from factbook.errors import InputError, NotFoundError, suggestion
from factbook.facts import freshness
from factbook.facts.across import FactColumn, sql_member_name
from factbook.integrations import catalog
from factbook.storage import Database

# In the place of an owner or a system: entities without one.
NOTHING: Final = "-"


async def find(database: Database, registry: Registry, source_id: str, name: str) -> FactColumn:
    """The fact of this name of a source; raises NotFoundError."""
    source = await known(registry, source_id)
    fact = next((one for one in source.schema if one.name == name), None)
    if fact is None:
        near = suggestion(name, (one.name for one in source.schema))
        raise NotFoundError(f'The data source {source.id} has no fact "{name}".{near}')
    column = FactColumn(
        source,
        fact,
        catalog.find_compliance_bit(source.id, name),
        freshness.freshness_of(database).stale_before(source.id),
        freshness.freshness_of(database).kept_before(source.id),
    )
    sql_member_name(fact)
    return column


async def part(
    database: Database,
    *,
    kind: str | None = None,
    namespace: str | None = None,
    owner: str | None = None,
    system: str | None = None,
    type: str | None = None,
    lifecycle: str | None = None,
) -> CatalogPart:
    """The part of the catalog that a caller names; a group owns what groups below it own.

    Raises InputError for what is no reference.
    """
    if any("\0" in text for text in (kind, namespace, type, lifecycle) if text):
        raise InputError("No entity has the character NUL.")
    found = CatalogPart(
        kind=kind and kind.strip().lower(),
        namespace=namespace and namespace.strip().lower(),
        type=type,
        lifecycle=lifecycle,
    )
    if owner is not None:
        found = found._replace(owners=await _owners(database, owner))
    if system is not None:
        ref = "" if system == NOTHING else str(refs.parse(system, kind="system"))
        found = found._replace(system=ref)
    return found


async def _owners(database: Database, owner: str) -> list[str]:
    if owner == NOTHING:
        return []
    ref = str(refs.parse(owner, kind="group"))
    return await affiliation.groups_below(database, ref) if ref.startswith("group:") else [ref]
