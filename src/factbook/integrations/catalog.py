"""Facts of the catalog's own sources, which the catalog stores as bits beside each entity."""

from functools import lru_cache
from typing import NamedTuple

import msgspec

from factbook.catalog import kinds as bits
from factbook.facts.datasource import DataSource, Handler, Lifecycle
from factbook.facts.schema import Fact


class CatalogFact(NamedTuple):
    """One fact: its name, the bit that holds it, and its description."""

    name: str
    bit: int
    description: str


class CatalogSource(NamedTuple):
    """One source: id, title, description, its group in the compliance shape, and its facts."""

    id: str
    title: str
    description: str
    group: str
    facts: tuple[CatalogFact, ...]


_SOURCES = (
    CatalogSource(
        "entity-metadata",
        "Entity metadata",
        "What an entity's metadata says about it.",
        "metadata",
        (
            CatalogFact("hasTitle", bits.HAS_TITLE, "There is a title."),
            CatalogFact("hasDescription", bits.HAS_DESCRIPTION, "There is a description."),
            CatalogFact("hasTags", bits.HAS_TAGS, "There is at least one tag."),
            CatalogFact("hasOwner", bits.HAS_OWNER, "The entity names an owner (spec.owner)."),
        ),
    ),
    CatalogSource(
        "entity-ownership",
        "Entity ownership",
        "How an entity is related to others in the catalog.",
        "ownership",
        (
            CatalogFact(
                "hasOwner",
                bits.HAS_OWNER_RELATION,
                "There is an ownedBy relation, whether its target is in the catalog or not.",
            ),
            CatalogFact("hasGroupOwner", bits.HAS_GROUP_OWNER, "The owner is a group."),
            CatalogFact(
                "hasRelationships",
                bits.HAS_RELATIONSHIPS,
                "There is any relation other than ownedBy.",
            ),
            CatalogFact(
                "ownerExists",
                bits.OWNER_EXISTS,
                "The target of the ownedBy relation is in the catalog.",
            ),
        ),
    ),
    CatalogSource(
        "techdocs",
        "TechDocs",
        "Whether an entity points to its documentation.",
        "techdocs",
        (
            CatalogFact(
                "hasTechdocsRef",
                bits.HAS_TECHDOCS_REF,
                "The annotation backstage.io/techdocs-ref points to documentation.",
            ),
        ),
    ),
)
_BY_ID = {source.id: source for source in _SOURCES}

SOURCES = tuple(
    DataSource(
        id=source.id,
        title=source.title,
        description=f"{source.description} Read from the catalog at the moment of the question.",
        cadence="0 0 * * *",  # for the samples in history
        lifecycle=Lifecycle(time_to_live={"days": 90}),
        handler=Handler("builtin", source.id, builtin_id=source.id),
        timeout={"minutes": 20},
        schema=tuple(Fact(fact.name, "boolean", fact.description) for fact in source.facts),
    )
    for source in _SOURCES
)


def is_catalog_source(source_id: str) -> bool:
    """True if this is one of the catalog's own sources."""
    return source_id in _BY_ID


def find_compliance_bit(source_id: str, fact_name: str) -> int | None:
    """The bit of `catalog.compliance` that holds a fact; None for a fact of another source."""
    known = _BY_ID[source_id].facts if is_catalog_source(source_id) else ()
    return next((fact.bit for fact in known if fact.name == fact_name), None)


def list_owner_sources() -> list[str]:
    """The sources with facts that depend on whether an entity's owner exists."""
    return [source.id for source in _SOURCES if needs_owner_bit(source.id)]


def depends_on_owner(source_id: str, fact_name: str) -> bool:
    """True if the fact depends on whether the entity's owner exists."""
    return find_compliance_bit(source_id, fact_name) == bits.OWNER_EXISTS


@lru_cache
def needs_owner_bit(source_id: str) -> bool:
    """True if facts of the source need OWNER_EXISTS, which is not stored."""
    return any(fact.bit == bits.OWNER_EXISTS for fact in _BY_ID[source_id].facts)


@lru_cache(maxsize=1024)
def encode_catalog_facts(source_id: str, compliance_bits: int) -> str:
    """The facts of one source as JSON text, from an entity's bits."""
    return msgspec.json.encode(_list_bit_values(_BY_ID[source_id], compliance_bits)).decode()


@lru_cache(maxsize=256)
def list_compliance_values(compliance_bits: int) -> dict[str, bool]:
    """Every value of the compliance shape by its path, e.g. `metadata.hasTitle`."""
    return {
        f"{source.group}.{name}": value
        for source in _SOURCES
        for name, value in _list_bit_values(source, compliance_bits).items()
    }


def _list_bit_values(source: CatalogSource, compliance_bits: int) -> dict[str, bool]:
    return {fact.name: bool(compliance_bits & fact.bit) for fact in source.facts}
