"""Data sources: get-data-source-discovery, and lookups of the sources that a call names."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.catalog import kinds
from factbook.catalog.kinds import OWNER_EXISTS
from factbook.catalog.store import related_entities, stored_entities
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.definitions.store import UNPUBLISHED
from factbook.errors import ToolError, suggestion
from factbook.facts import freshness, store
from factbook.facts.datasource import DataSource, Handler
from factbook.facts.freshness import Latest
from factbook.facts.schema import BAD_ANNOTATION, NO_ANNOTATION, TYPES, Fact, reason_word
from factbook.scheduling import runs
from factbook.storage import Database
from factbook.tools.tool import (
    SIZE_NOTE,
    Context,
    Schema,
    Tool,
    describe_argument,
    describe_list,
    describe_record,
    describe_text_member,
    encode_result,
)

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
# Names in an error message: with many sources, the message would be longer than an answer.
_MOST_NAMES = 100


SourceId = Annotated[
    str,
    describe_argument(
        "Id of a data source, from get-data-source-discovery; or `entity` for owner, ownerExists, "
        "type, lifecycle, tags and labels.",
        "entity-metadata",
    ),
]
# Reasons that the value of an annotation can explain.
REASONS_ABOUT_ANNOTATIONS: Final = frozenset({NO_ANNOTATION, BAD_ANNOTATION, "not-found"})
_PREFIX: Final = "metadata.annotations."
_MOST_ANNOTATIONS: Final = 3
_LONGEST_ANNOTATION: Final = 100


async def find_essential_facts(database: Database, ref: str) -> tuple[dict[str, Any], int] | None:
    """The essential facts of an entity and the time of its last change; None if it is missing."""
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
    """Add the essential facts to entities that have their documents."""
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
    """Suggest facts of all data sources: those with names similar to `name`, and the first ones."""
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
    """The annotations in the source's filter with the entity's values; None if it has none."""
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
    values = []
    for name in given[:_MOST_ANNOTATIONS]:
        text = str(found[name.lower()])
        short = text if len(text) <= _LONGEST_ANNOTATION else f"{text[:_LONGEST_ANNOTATION]}…"
        values.append(f"{name} is {short}")
    return f"annotation {', '.join(values)}"


def explain_reason(reason: str, source: DataSource, entity: Mapping[str, Any]) -> str:
    """A reason, with the annotation that explains it."""
    about = (
        describe_annotations(source, entity)
        if reason_word(reason) in REASONS_ABOUT_ANNOTATIONS
        else None
    )
    if about is None:
        return reason
    return f"{reason}; {about}" if ":" in reason else f"{reason}: {about}"


class DiscoveryArguments(Struct, forbid_unknown_fields=True):
    """No argument is needed."""

    limit: (
        Annotated[
            int, describe_argument("Most data sources to return; all when left out.", 20, ge=1)
        ]
        | UnsetType
    ) = UNSET


async def run_source_discovery(arguments: DiscoveryArguments, context: Context) -> str:
    """Every data source with its schema, and their number."""
    known = await runs.fetch_health(context.database)
    ids = [
        id_ for id_, one in context.sources.items() if one.handler and one.handler.type == "push"
    ]
    pushed = await store.find_last_written(context.database, ids)
    sources = []
    for source in context.sources.values():
        shown = source.render()
        health, pushed_at = known.get(source.id), pushed.get(source.id)
        if health is not None or pushed_at is not None:
            rendered = freshness.render_health(source, health, context.now, pushed_at=pushed_at)
            shown = {**shown, "health": rendered}
        sources.append(shown)
    handlers = [source.handler for source in context.sources.values()]
    builtin = sum(handler is not None and handler.builtin_id is not None for handler in handlers)
    return encode_result(
        {
            "dataSources": sources if arguments.limit is UNSET else sources[: arguments.limit],
            "totalCount": len(sources),
            "builtinCount": builtin,
            "customCount": len(sources) - builtin,
        }
    )


_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "integer"}
_FACT: Schema = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": list(TYPES)},
        "description": _TEXT,
        "unit": _TEXT,
        "title": describe_text_member("What people call it."),
        "metadata": {"type": "object", "properties": {"key": _TEXT}},
    },
    "required": ["type"],
}
_SOURCE: Schema = {
    "type": "object",
    "properties": {
        "id": describe_text_member("Used as dataSourceId in the other tools."),
        "title": _TEXT,
        "description": _TEXT,
        "owner": describe_text_member("Group or user whose entities alone it is about."),
        "cadence": describe_text_member("Cron line of five fields, UTC."),
        "lifecycle": {
            "type": "object",
            "description": "How much history is kept: maxItems or timeToLive.",
        },
        "createdAt": _TEXT,
        "updatedAt": _TEXT,
        "handlerDefinition": describe_record(
            {"type": _TEXT, "config": describe_record({"id": _TEXT, "builtinId": _TEXT}, ["id"])},
            ["type", "config"],
        ),
        "timeout": {"type": "object"},
        "draft": {"type": "boolean"},
        "version": _TEXT,
        "entityFilter": {"type": "array", "items": {"type": "object"}},
        "schema": {
            "type": "object",
            "description": "Fact name to what the fact is.",
            "additionalProperties": _FACT,
        },
        "health": {
            "type": "object",
            "description": "Its state (up, partial, late, down, new, draft) and the reason; of a "
            "source that collects its last run, with entities covered, failed, incomplete and "
            "skipped, and its next run.",
        },
    },
    "required": ["id", "title"],
}

SOURCE_DISCOVERY_TOOL = Tool(
    name="get-data-source-discovery",
    title="Data source discovery",
    description=(
        "Lists the data sources of this server with the schema of the facts that each provides. "
        "Call it first to learn the ids that get-entity-facts and get-all-entities-facts take as "
        "dataSourceId. Takes no required arguments. Returns dataSources, totalCount, builtinCount "
        f"and customCount. {SIZE_NOTE}; `limit` shortens the list."
    ),
    arguments=DiscoveryArguments,
    output_schema=describe_record(
        {
            "dataSources": describe_list(_SOURCE),
            "totalCount": _NUMBER,
            "builtinCount": _NUMBER,
            "customCount": _NUMBER,
        },
        ("dataSources", "totalCount", "builtinCount", "customCount"),
    ),
    run=run_source_discovery,
)
