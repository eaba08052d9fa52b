"""get-entity-facts: the raw facts of one data source about one entity."""

from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.catalog.store import by_ref
from factbook.clock import iso
from factbook.errors import ToolError
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.integrations import catalog
from factbook.tools import sources
from factbook.tools.tool import (
    SIZE_NOTE,
    Context,
    EntityArguments,
    Schema,
    SourceId,
    Tool,
    argument,
    encode,
    existing,
    unknown_entity,
)

EVERY_KIND = "*"

_MOST = 2**31  # what both databases can count to
# Entities of all pages that are counted for each page: of a million that would take seconds.
_COUNTED = 10_000


class OneArguments(EntityArguments, forbid_unknown_fields=True, kw_only=True):
    """One entity and a data source."""

    data_source_id: SourceId = msgspec.field(name="dataSourceId")


class AllArguments(Struct, forbid_unknown_fields=True):
    """A data source, and which of its entities."""

    data_source_id: SourceId = msgspec.field(name="dataSourceId")
    kind: Annotated[
        str, argument("Kind of the entities; `*` for every kind.", "component", min_length=1)
    ] = "component"
    namespace: (
        Annotated[
            str, argument("Namespace of the entities; any when left out.", "default", min_length=1)
        ]
        | UnsetType
    ) = UNSET
    limit: (
        Annotated[int, argument("Most entities to return; all when left out.", 100, ge=1)]
        | UnsetType
    ) = UNSET
    cursor: (
        Annotated[str, argument("nextCursor of the page before.", "component:default/payments-api")]
        | UnsetType
    ) = UNSET
    facts: (
        Annotated[
            list[str], argument("Names of the facts to keep; all when left out.", ["hasOwner"])
        ]
        | UnsetType
    ) = UNSET


class Selection(NamedTuple):
    """Which entities of a source: None and empty text select all."""

    kind: str | None
    namespace: str | None
    after: str
    limit: int | None


async def one(arguments: OneArguments, context: Context) -> str:
    """Every raw fact of the source about the entity."""
    source = sources.one(arguments.data_source_id, context)
    ref = arguments.ref()
    if catalog.answers(source.id):
        found = await existing(context.database, ref)
        facts = catalog.facts(source.id, found.compliance)
        return _one(source, found.ref, facts, found.updated_at)
    known = await store.latest_by_ref(context.database, source.id, ref)
    if known is None:
        raise await unknown_entity(context.database, ref)
    return _one(source, ref, known.facts or "{}", known.written_at)


def _one(source: DataSource, ref: str, facts: str, written_at: int | None) -> str:
    time = f',"timestamp":"{iso(written_at)}"' if written_at is not None else ""
    head = _head(source.id, source.title)
    return f'{head},"entityRef":{encode(ref)},"facts":{facts}{time}{_draft(source)}}}'


def _draft(source: DataSource) -> str:
    return ',"draft":true' if source.draft else ""


async def many(arguments: AllArguments, context: Context) -> str:
    """The facts of every tracked entity that the arguments select."""
    source = sources.one(arguments.data_source_id, context)
    kept = None if arguments.facts is UNSET else frozenset(arguments.facts)
    if kept is not None:
        sources.check_facts(source, kept)
    selection = _selection(arguments)
    # Joined once at the end: an answer may be many megabytes.
    texts = [f'{_head(source.id, source.title)},"entities":[']
    taken, last, more = 0, "", False
    async for found in _rows(source, kept, selection, context):
        rows = found if selection.limit is None else found[: selection.limit - taken]
        more = len(rows) < len(found)
        if rows:
            texts += ["," if taken else "", _entries(rows)]
            taken, last = taken + len(rows), rows[-1][0]
    tail = await _tail(source, selection, context, last if more else None)
    return "".join([*texts, "]", tail, "}"])


async def _tail(
    source: DataSource, selection: Selection, context: Context, next_cursor: str | None
) -> str:
    """The additive fields of a page; none when everything was asked for."""
    if selection.limit is None:
        return _draft(source)
    if catalog.answers(source.id):
        total = await by_ref.count(
            context.database, selection.kind, selection.namespace, _COUNTED + 1
        )
    else:
        total = await store.count(
            context.database,
            source,
            _COUNTED + 1,
            kind=selection.kind,
            namespace=selection.namespace,
        )
    count = f',"totalCount":{total}' if total <= _COUNTED else ""
    cursor = f',"nextCursor":{encode(next_cursor)}' if next_cursor is not None else ""
    return f"{count}{cursor}{_draft(source)}"


Row = tuple[str, str]  # a reference, and the JSON text that follows it in its entry


async def _rows(
    source: DataSource, kept: frozenset[str] | None, selection: Selection, context: Context
) -> AsyncIterator[list[Row]]:
    kind, namespace, after, limit = selection
    most = None if limit is None else limit + 1  # one more tells whether there is more
    if catalog.answers(source.id):
        # Thousands of entities share a few of these.
        end = lru_cache(maxsize=1024)(
            lambda bits, time: _end(catalog.facts(source.id, bits), time, kept)
        )
        async for page in by_ref.complying_pages(context.database, kind, namespace, after, most):
            yield [(ref, end(bits, time)) for ref, bits, time in page]
        return
    async for tracked in store.pages(
        context.database, source, kind=kind, namespace=namespace, after=after, limit=most
    ):
        yield [
            (item.ref, _end(bytes(item.facts).decode(), item.written_at, kept)) for item in tracked
        ]


def _end(facts: str, written_at: int, kept: frozenset[str] | None) -> str:
    text = facts if kept is None else _keep(facts, kept)
    return f'"facts":{text},"timestamp":"{iso(written_at)}"}}'


def _entries(rows: list[Row]) -> str:
    joined = "".join([ref for ref, _ in rows])
    if '"' in joined or "\\" in joined:  # all that JSON escapes of what a reference may hold
        rows = [(encode(ref)[1:-1], end) for ref, end in rows]
    return ",".join([f'{{"entityRef":"{ref}",{end}' for ref, end in rows])


def _selection(arguments: AllArguments) -> Selection:
    kind = None if arguments.kind == EVERY_KIND else arguments.kind.strip().lower()
    namespace = None if arguments.namespace is UNSET else arguments.namespace.strip().lower()
    after = "" if arguments.cursor is UNSET else _after(arguments.cursor)
    limit = None if arguments.limit is UNSET else min(arguments.limit, _MOST)
    return Selection(kind, namespace, after, limit)


def _after(cursor: str) -> str:
    """The reference that a cursor is; raises ToolError for what is none."""
    if ":" not in cursor or "/" not in cursor:
        raise ToolError("That is no nextCursor of a page before. Leave cursor out to start anew.")
    return cursor


def _keep(facts: str, kept: frozenset[str]) -> str:
    values: dict[str, msgspec.Raw] = msgspec.json.decode(facts, type=dict[str, msgspec.Raw])
    return encode({name: value for name, value in values.items() if name in kept})


@lru_cache(maxsize=1024)
def _head(id_: str, title: str) -> str:
    return f'{{"dataSourceId":{encode(id_)},"dataSourceTitle":{encode(title)}'


_TOTAL = f"Entities in all pages; left out above {_COUNTED:,}."
_FACTS: Schema = {"type": "object", "description": "Fact name to value."}
_TIME: Schema = {"type": "string", "description": "Last successful write, ISO 8601."}
_REF: Schema = {"type": "string", "description": "kind:namespace/name, in lower case."}
_COMMON: Schema = {
    "dataSourceId": {"type": "string"},
    "dataSourceTitle": {"type": "string"},
    "draft": {"type": "boolean", "description": "The source is a draft."},
}

ONE = Tool(
    name="get-entity-facts",
    title="Facts about one entity",
    description=(
        "Returns every raw fact of one data source about one catalog entity. Needs a dataSourceId "
        "from get-data-source-discovery; for many entities use get-all-entities-facts, for ready "
        "figures the get-…-metrics tools. kind defaults to component, namespace to default. "
        "An entity that was never collected has empty facts and no timestamp."
    ),
    arguments=OneArguments,
    output_schema={
        "type": "object",
        "properties": {**_COMMON, "entityRef": _REF, "facts": _FACTS, "timestamp": _TIME},
        "required": ["dataSourceId", "entityRef", "facts"],
    },
    run=one,
)
ALL = Tool(
    name="get-all-entities-facts",
    title="Facts about all entities",
    description=(
        "Returns the facts of one data source about every entity that it tracks. Needs a "
        "dataSourceId from get-data-source-discovery. Without kind only components are returned; "
        "kind `*` returns every kind; without namespace all namespaces. Everything is returned at "
        f"once unless limit is given. {SIZE_NOTE}; ask for pages with `limit` and `cursor`."
    ),
    arguments=AllArguments,
    output_schema={
        "type": "object",
        "properties": {
            **_COMMON,
            "entities": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"entityRef": _REF, "facts": _FACTS, "timestamp": _TIME},
                    "required": ["entityRef", "facts"],
                },
            },
            "nextCursor": {"type": "string", "description": "Pass as cursor for the next page."},
            "totalCount": {"type": "integer", "description": _TOTAL},
        },
        "required": ["dataSourceId", "entities"],
    },
    run=many,
)
