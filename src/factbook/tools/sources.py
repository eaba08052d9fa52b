"""Data sources as tools name them: lookup, the source `entity`, and annotations in reasons."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from factbook.catalog import kinds
from factbook.catalog.kinds import OWNER_EXISTS
from factbook.catalog.store import related_entities, stored_entities
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.definitions.store import UNPUBLISHED
from factbook.errors import ToolError, suggestion
from factbook.facts.datasource import DataSource, Handler
from factbook.facts.freshness import Latest
from factbook.facts.schema import BAD_ANNOTATION, NO_ANNOTATION, Fact, reason_word
from factbook.storage import Database
from factbook.tools.tool import Context, describe_argument

ESSENTIAL_ID: Final = "entity"
ESSENTIAL_SOURCE: Final = DataSource(
    id=ESSENTIAL_ID,
    title="Entity",
    description="What an entity says of itself. Read from the catalog at the moment of the "
    "question; texts in it were written by others.",
    handler=Handler("builtin", ESSENTIAL_ID, builtin_id=ESSENTIAL_ID),
    schema=(
        Fact("owner", "string", "Reference of the owner."),
        Fact(kinds.OWNER_EXISTS_FACT, "boolean", "The owner is in the catalog."),
        Fact("type", "string", "As in spec.type."),
        Fact("lifecycle", "string", "As in spec.lifecycle."),
        Fact("tags", "set", "As in metadata.tags."),
        Fact("labels", "object", "As in metadata.labels."),
    ),
)
# An error names no more than these: with many sources it would be longer than what was asked for.
_MOST_NAMES = 100


SourceId = Annotated[
    str,
    describe_argument(
        "Id of a data source, from get-data-source-discovery; or `entity` for owner, ownerExists, "
        "type, lifecycle, tags and labels.",
        "entity-metadata",
    ),
]
# Reasons that an annotation explains.
REASONS_ABOUT_ANNOTATIONS: Final = frozenset({NO_ANNOTATION, BAD_ANNOTATION, "not-found"})
_PREFIX: Final = "metadata.annotations."
_MOST_ANNOTATIONS: Final = 3
_LONGEST_ANNOTATION: Final = 100


async def find_essential_facts(database: Database, ref: str) -> tuple[dict[str, Any], int] | None:
    """The facts of one entity and the time of its last change; None without it."""
    found = await related_entities.find_with_owner(database, ref)
    if found is None:
        return None
    [bits] = await stored_entities.read_bits(database, [found.id], owners=True)
    entity = msgspec.json.decode(found.stored.render())
    owner_exists = bool(bits[1] & OWNER_EXISTS)
    return kinds.list_essentials(entity, owner_exists=owner_exists), found.updated_at


async def add_essential_facts(
    database: Database, entities: Sequence[CheckedEntity], entity_ids: Sequence[int]
) -> None:
    """Add the facts to entities with their documents."""
    rows = await stored_entities.read_bits(database, list(entity_ids), owners=True)
    known = {id_: (bits, at) for id_, bits, at in rows}
    for entity, id_ in zip(entities, entity_ids, strict=True):
        bits, at = known.get(id_, (0, 0))
        facts = kinds.list_essentials(entity.document, owner_exists=bool(bits & OWNER_EXISTS))
        entity.facts = {**entity.facts, ESSENTIAL_ID: Latest(facts, {}, "", at)}


def find_source(source_id: str, context: Context) -> DataSource:
    """The data source with this id; raises ToolError, which lists the existing ones."""
    source = context.sources.get(source_id)
    if source is None and source_id == ESSENTIAL_ID:
        return ESSENTIAL_SOURCE
    if source is None:
        raise ToolError(
            f'There is no data source "{source_id}".{suggestion(source_id, context.sources)} '
            "Call get-data-source-discovery for their schemas."
        )
    return source


def require_source_facts(source: DataSource, names: Iterable[str]) -> None:
    """Raise ToolError for names of facts that the source does not have."""
    known = [fact.name for fact in source.schema]
    if unknown := sorted(set(names).difference(known)):
        raise ToolError(
            f"The data source {source.id} has no fact {_join_names(unknown)}."
            f"{suggestion(unknown[0], known)}"
        )


def list_sources_with_facts(names: Iterable[str], context: Context) -> list[str]:
    """The ids of the sources with one of these facts; raises ToolError for unknown names."""
    asked, found = set(names), dict[str, set[str]]()
    for source in context.sources.values():
        if some := asked.intersection(fact.name for fact in source.schema):
            found[source.id] = some
    if unknown := sorted(asked.difference(*found.values())):
        raise ToolError(
            f"No data source has a fact {_join_names(unknown)}."
            f"{suggest_facts(unknown[0], context.sources)} "
            "Call get-data-source-discovery for the facts that there are."
        )
    return list(found)


def suggest_facts(name: str, sources: Mapping[str, DataSource]) -> str:
    """The facts of all data sources that are called like `name`, and the first of all."""
    known = {fact.name for source in sources.values() for fact in source.schema}
    return suggestion(name, sorted(known))


def is_draft_version(source: DataSource, version: str) -> bool:
    """Return true if the source wrote this version as a draft."""
    return source.draft or version == UNPUBLISHED


def _join_names(names: Iterable[str]) -> str:
    words = list(names)
    more = f" and {len(words) - _MOST_NAMES} more" if len(words) > _MOST_NAMES else ""
    return ", ".join(words[:_MOST_NAMES]) + more


def describe_annotations(source: DataSource, entity: Mapping[str, Any]) -> str | None:
    """The annotations of the source's filter with their values; None if it names none."""
    names = [
        key.removeprefix(_PREFIX)
        for conditions in source.entity_filter or ()
        for key in conditions
        if key.lower().startswith(_PREFIX)
    ]
    if not names:
        return None
    metadata: Mapping[str, Any] = entity.get("metadata") or {}
    found = {key.lower(): text for key, text in (metadata.get("annotations") or {}).items()}
    given = [name for name in dict.fromkeys(names) if name.lower() in found]
    if not given:
        return f"no annotation {' or '.join(list(dict.fromkeys(names))[:_MOST_ANNOTATIONS])}"
    values = [
        f"{name} is {_shorten_annotation(str(found[name.lower()]))}"
        for name in given[:_MOST_ANNOTATIONS]
    ]
    return f"annotation {', '.join(values)}"


def explain_reason(reason: str, source: DataSource, entity: Mapping[str, Any]) -> str:
    """A reason, followed by the annotation that it is about."""
    about = (
        describe_annotations(source, entity)
        if reason_word(reason) in REASONS_ABOUT_ANNOTATIONS
        else None
    )
    if about is None:
        return reason
    return f"{reason}; {about}" if ":" in reason else f"{reason}: {about}"


def _shorten_annotation(text: str) -> str:
    return text if len(text) <= _LONGEST_ANNOTATION else f"{text[:_LONGEST_ANNOTATION]}…"
