"""Medians of a number over a team and over the catalog, where they can be had in no time."""

from typing import Final, NamedTuple
from urllib.parse import quote

from factbook.catalog.store import overview
from factbook.catalog.store.affiliation import CatalogPart
from factbook.facts import across, distribution
from factbook.facts.across import NUMBERS, FactColumn
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.integrations import catalog
from factbook.storage import Database
from factbook.web.charts import scales
from factbook.web.site import fact_display
from factbook.web.site.formats import segment

# Entities of a catalog in which the values of all are counted for a page about one of them.
_FEW: Final = 5_000


class Median(NamedTuple):
    """A median in words over the entities with a value, and the page of these."""

    title: str
    value: str
    entities: int
    path: str


async def medians(
    database: Database, source: DataSource, fact: Fact, owner: str | None
) -> list[Median]:
    """The medians over the owner's entities and all; none if the catalog is large."""
    if fact.type not in NUMBERS or catalog.answers(source.id):
        return []
    if sum((await overview.by_kind(database)).values()) > _FEW or not _is_name(fact.name):
        return []
    counted = await across.counted(database, FactColumn(source, fact), CatalogPart(), "owner")
    found = distribution.of(fact, counted, top=0, now=0)
    unit, whole = fact_display.unit_of(fact), across_path(source.id, fact.name)
    rows: list[Median] = []
    team = next((one for one in found.groups if one.name == owner), None)
    if owner and team and team.median is not None:
        path = across_path(source.id, fact.name, owner)
        rows.append(Median("Team", scales.quantity(team.median, unit), team.known, path))
    if found.spread is not None:
        median = scales.quantity(found.spread.median, unit)
        rows.append(Median("Catalog", median, found.known, whole))
    return rows


def across_path(source_id: str, name: str, owner: str = "") -> str:
    """The page of a fact across the catalog, or over what an owner has."""
    path = f"/data-sources/{segment(source_id)}/facts/{segment(name)}"
    return f"{path}?owner={quote(owner, safe='')}" if owner else path


def _is_name(name: str) -> bool:
    """True for a name that SQL takes."""
    return name.isprintable() and not set('"\\') & set(name)
