"""get-all-entities-facts: the raw facts of one data source about many entities."""

from contextlib import aclosing
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.catalog.store import by_ref
from factbook.catalog.store.conditions import EntityRange
from factbook.facts import store, unknown
from factbook.facts.datasource import DataSource
from factbook.integrations import catalog
from factbook.tools import entity_rows, essential_facts, sources
from factbook.tools.entities import chosen_facts, selection
from factbook.tools.entity_facts import COMMON, ENTRY, draft, head
from factbook.tools.entity_rows import Row, Selection
from factbook.tools.pages import MOST_CHARACTERS, ref_after, ref_cursor
from factbook.tools.result_schema import AGE, NEXT_CURSOR, SIZE_NOTE, array, record, text
from factbook.tools.tool import Context, Tool, argument, encode

EVERY_KIND = "*"

_MOST = 2**31  # what both databases can count to
_PAGE: Final = 100  # for hosts that don't say how many
# Entities of all pages that are counted for each page: of a million that would take seconds.
COUNTED: Final = 10_000


class AllArguments(Struct, forbid_unknown_fields=True):
    """A data source, and which of its entities."""

    data_source_id: sources.SourceId = msgspec.field(name="dataSourceId")
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
        Annotated[
            int,
            argument("Most entities to return; all, or at /mcp a page, when left out.", 100, ge=1),
        ]
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
    unknown: Annotated[
        bool,
        argument(
            "Return instead the entities that the source is about and has no value of, each with "
            "empty facts and the reasons.",
            True,
        ),
    ] = False
    owner: (
        Annotated[str, argument("With the groups below it; any when left out.", "team-a")]
        | UnsetType
    ) = UNSET
    where: (
        Annotated[
            dict[str, Any],
            argument(
                "Condition as in find-entities; none when left out.",
                {"fact": "hasOwner", "operator": "equal", "value": False},
            ),
        ]
        | UnsetType
    ) = UNSET
    count: Annotated[bool, argument("Numbers alone.", True)] = False
    group_by: (
        Annotated[
            str, argument("Count by a fact, or as find-entities; none when left out.", "owner")
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="groupBy")

    @property
    def chooses(self) -> bool:
        """True if it asks for what the answers to the seed's arguments do not have."""
        given = (self.owner, self.where, self.group_by)
        return self.count or any(one is not UNSET for one in given)


async def run(arguments: AllArguments, context: Context) -> str:
    """The facts of every tracked entity selected by the arguments."""
    source = sources.one(arguments.data_source_id, context)
    if arguments.facts is not UNSET:
        sources.check_facts(source, arguments.facts)
    if arguments.chooses or source is essential_facts.SOURCE:
        return await _chosen(source, arguments, context)
    chosen = _selection(arguments, context)
    known = entity_rows.own if catalog.answers(source.id) else entity_rows.tracked
    rows = entity_rows.lacking if arguments.unknown else known
    # Joined once at the end: an answer may be many megabytes.
    texts = [f'{head(source)},"entities":[']
    limit, taken, last, more = chosen.entities.limit, 0, "", False
    room = MOST_CHARACTERS if context.in_pages else None
    async with aclosing(rows(source, chosen, context)) as batches:
        async for found in batches:
            page = found if limit is None else found[: limit - taken]
            if room is not None:
                page, room = _fitting(page, room)
            more = len(page) < len(found)
            if page:
                texts += ["," if taken else "", _entries(page)]
                taken, last = taken + len(page), page[-1][0]
            if more:
                break
    if not taken and not chosen.entities.after:
        await selection.refuse_unknown(context.database, _kind(chosen.entities))
    tail = await _tail(arguments, source, chosen, context)
    cursor = f',"nextCursor":{encode(ref_cursor(last))}' if more else ""
    return "".join([*texts, "]", tail, cursor, draft(source), "}"])


async def _chosen(source: DataSource, arguments: AllArguments, context: Context) -> str:
    """The answer in the form for agents."""
    entities, kept = _selection(arguments, context)
    given = {"kind": entities.kind, "namespace": entities.namespace, "owner": arguments.owner}
    searched = {name: value for name, value in given.items() if value not in (None, UNSET)}
    group_by = None if arguments.group_by is UNSET else arguments.group_by
    if group_by is not None:
        chosen_facts.check_group(source, group_by)
    asked = chosen_facts.FactChoice(
        source,
        await selection.condition(context.database, searched),
        None if arguments.where is UNSET else arguments.where,
        kept,
        entities.limit or _MOST,
        entities.after,
        arguments.count,
        group_by,
        arguments.unknown,
    )
    answer = await chosen_facts.answer(asked, context)
    if answer.get("totalCount") == 0 and not answer.get("unknown"):
        await selection.refuse_unknown(context.database, _kind(entities))
    return f"{head(source)},{encode(answer)[1:-1]}{draft(source)}}}"


def _kind(entities: EntityRange) -> dict[str, str]:
    """The kind, if one is given. A namespace that the last push emptied is answered with none."""
    return {} if entities.kind is None else {"kind": entities.kind}


async def _tail(
    arguments: AllArguments, source: DataSource, chosen: Selection, context: Context
) -> str:
    """The additional members with counts of entities."""
    lacking, entities = _NONE, chosen.entities
    is_page = entities.limit is not None
    wanted = is_page if arguments.unknown else not entities.after
    if wanted and not catalog.answers(source.id):
        lacking = await unknown.count(context.database, source, entities, COUNTED + 1)
    if arguments.unknown:
        total = lacking.entities if lacking.is_whole else COUNTED + 1
        return _total(total) if is_page else ""
    known = _total(await _count(source, entities, context)) if is_page else ""
    return known + (_unknown_entities(lacking) if lacking is not _NONE else "")


def _total(count: int) -> str:
    return f',"totalCount":{count}' if count <= COUNTED else ""


def _unknown_entities(found: unknown.UnknownCount) -> str:
    told = {"count": min(found.entities, COUNTED), "reasons": found.reasons}
    more = {} if found.is_whole else {"more": True}
    return f',"unknownEntities":{encode(told | more)}'


async def _count(source: DataSource, entities: EntityRange, context: Context) -> int:
    """Count the tracked entities of all pages, up to one more than is reported."""
    if catalog.answers(source.id):
        return await by_ref.count(context.database, entities, COUNTED + 1)
    return await store.count(context.database, source, entities, COUNTED + 1)


def _entries(rows: list[Row]) -> str:
    joined = "".join([ref for ref, _ in rows])
    if '"' in joined or "\\" in joined:  # all that JSON escapes of what a reference may hold
        rows = [(encode(ref)[1:-1], end) for ref, end in rows]
    return ",".join([f'{{"entityRef":"{ref}",{end}}}' for ref, end in rows])


def _fitting(rows: list[Row], room: int) -> tuple[list[Row], int | None]:
    """The first rows that fit into so many characters, but at least one, and what is left."""
    for at, (ref, rest) in enumerate(rows):
        room -= len(ref) + len(rest)
        if room < 0 and at:
            return rows[:at], 0
    return rows, room


def _selection(arguments: AllArguments, context: Context) -> Selection:
    kind = None if arguments.kind == EVERY_KIND else arguments.kind.strip().lower()
    namespace = None if arguments.namespace is UNSET else arguments.namespace.strip().lower()
    after = "" if arguments.cursor is UNSET else ref_after(arguments.cursor)
    limit = _PAGE if context.in_pages else None
    if arguments.limit is not UNSET:
        limit = min(arguments.limit, _MOST)
    kept = None if arguments.facts is UNSET else frozenset(arguments.facts)
    return Selection(EntityRange(kind, namespace, after, limit), kept)


_TOTAL = f"Entities in all pages; left out above {COUNTED:,}."
_SCALARS = ("string", "number", "boolean", "null")
_NUMBER = {"type": "integer"}
_NONE = unknown.UnknownCount({}, 0, is_whole=True)

_AT_ONCE: Final = "Everything is returned at once unless limit is given."
_DESCRIPTION: Final = (
    "Returns the facts of one data source about every entity of which it has values. "
    "unknownEntities counts those that it is about and has no value of, which say nothing "
    "either way; `unknown` lists them. Needs a dataSourceId from get-data-source-discovery. "
    "Without kind only components are returned; kind `*` returns every kind; without namespace "
    f"all namespaces. {_AT_ONCE} `where`, `owner`, "
    "`count` and `groupBy` leave long values out unless `facts` names them. "
    f"{SIZE_NOTE}; ask for pages with `limit` and `cursor`."
)

TOOL = Tool(
    name="get-all-entities-facts",
    title="Facts about all entities",
    description=_DESCRIPTION,
    host_description=_DESCRIPTION.replace(
        _AT_ONCE, f"A page has {_PAGE} entities, or as many as hosts take at once."
    ),
    arguments=AllArguments,
    output_schema=record(
        {
            **COMMON,
            "entities": array(record(ENTRY, ("entityRef", "facts"))),
            "unknownEntities": {
                "type": "object",
                "description": "On the first page: how many entities the source is about and has "
                "no value of, and how many for each reason. more: there may be more than these.",
                "properties": {
                    "count": {"type": "integer"},
                    "reasons": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "more": {"type": "boolean"},
                },
                "required": ["count", "reasons"],
            },
            **AGE,
            "groups": array(
                record(
                    {"value": {"anyOf": [{"type": one} for one in _SCALARS]}, "count": _NUMBER},
                    ("value", "count"),
                )
            ),
            "otherGroups": _NUMBER,
            "unknown": {"type": "integer", "description": "Neither met nor failed, or no value."},
            "staleCount": {"type": "integer", "description": "Counted ones with a stale value."},
            "examined": {"type": "integer", "description": "So many were looked at so far."},
            "leftOut": {
                "type": "object",
                "description": "Facts with long values, and how many entities have such.",
                "additionalProperties": {"type": "integer"},
            },
            "timestamp": text("That of all entities of the page."),
            "nextCursor": NEXT_CURSOR,
            "totalCount": {"type": "integer", "description": _TOTAL},
        },
        ("dataSourceId", "entities"),
    ),
    run=run,
)
