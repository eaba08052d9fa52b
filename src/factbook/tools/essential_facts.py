"""The data source `entity` of the tools: owner, type, lifecycle, tags and labels."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from factbook.catalog import essentials
from factbook.catalog.compliance import OWNER_EXISTS
from factbook.catalog.store import collectable, summaries
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.facts.datasource import DataSource, Handler
from factbook.facts.freshness import Latest
from factbook.facts.schema import Fact
from factbook.storage import Database

ID: Final = "entity"

SOURCE: Final = DataSource(
    id=ID,
    title="Entity",
    description="What an entity says of itself. Read from the catalog at the moment of the "
    "question; texts in it were written by others.",
    handler=Handler("builtin", ID, builtin_id=ID),
    schema=(
        Fact("owner", "string", "Reference of the owner."),
        Fact(essentials.OWNER_EXISTS, "boolean", "The owner is in the catalog."),
        Fact("type", "string", "As in spec.type."),
        Fact("lifecycle", "string", "As in spec.lifecycle."),
        Fact("tags", "set", "As in metadata.tags."),
        Fact("labels", "object", "As in metadata.labels."),
    ),
)


async def of_ref(database: Database, ref: str) -> tuple[dict[str, Any], int] | None:
    """The facts of one entity and the time of its last change; None without it."""
    found = await summaries.found(database, ref)
    if found is None:
        return None
    [bits] = await collectable.bits_of_ids(database, [found.id], owners=True)
    entity = msgspec.json.decode(found.stored.render())
    owner_exists = bool(bits[1] & OWNER_EXISTS)
    return essentials.values(entity, owner_exists=owner_exists), found.updated_at


async def add(
    database: Database, entities: Sequence[CheckedEntity], entity_ids: Sequence[int]
) -> None:
    """Add the facts to entities with their documents."""
    rows = await collectable.bits_of_ids(database, list(entity_ids), owners=True)
    known = {id_: (bits, at) for id_, bits, at in rows}
    for entity, id_ in zip(entities, entity_ids, strict=True):
        bits, at = known.get(id_, (0, 0))
        facts = essentials.values(entity.document, owner_exists=bool(bits & OWNER_EXISTS))
        entity.facts = {**entity.facts, ID: Latest(facts, {}, "", at)}
