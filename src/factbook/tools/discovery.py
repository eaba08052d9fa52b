"""get-data-source-discovery: the data sources, and the schema of each."""

from typing import Annotated, Any

from msgspec import UNSET, Struct, UnsetType

from factbook.facts import freshness, store
from factbook.facts.datasource import DataSource
from factbook.facts.schema import TYPES
from factbook.scheduling import runs
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
    sources = [
        source.render()
        | _render_health(source, known.get(source.id), pushed.get(source.id), context.now)
        for source in context.sources.values()
    ]
    handlers = [source.handler for source in context.sources.values()]
    builtin = sum(handler is not None and handler.builtin_id is not None for handler in handlers)
    shown = sources if arguments.limit is UNSET else sources[: arguments.limit]
    return encode_result(
        {
            "dataSources": shown,
            "totalCount": len(sources),
            "builtinCount": builtin,
            "customCount": len(sources) - builtin,
        }
    )


def _render_health(
    source: DataSource, known: runs.SourceHealth | None, pushed_at: int | None, now: int
) -> dict[str, Any]:
    if known is None and pushed_at is None:
        return {}
    return {"health": freshness.render_health(source, known, now, pushed_at=pushed_at)}


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

TOOL = Tool(
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
