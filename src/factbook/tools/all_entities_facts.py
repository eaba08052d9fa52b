"""get-all-entities-facts: the facts of one data source about many entities, or their numbers.

Answers about chosen facts are compact, for agents: long values are left out unless named, a time
that all rows share appears once, and the length of a page is limited.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple, get_args

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.catalog.store import related_entities, stored_entities
from factbook.catalog.store.browse import Among
from factbook.catalog.store.conditions import Condition, EntityRange
from factbook.catalog.store.related_entities import Group
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.state import PASS, UNKNOWN
from factbook.clock import iso
from factbook.errors import ToolError
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Latest
from factbook.facts.store import Tracked
from factbook.integrations import catalog
from factbook.storage.database import LONGEST_SEARCH, limit_time
from factbook.tools import selection, sources
from factbook.tools.facts import (
    COMMON,
    ENTRY,
    build_stale_members,
    decode_members,
    render_draft_mark,
    render_facts_end,
    render_source_head,
)
from factbook.tools.selection import FactConditions, Search
from factbook.tools.tool import (
    AGE,
    LONGEST_VALUE,
    MOST_PAGE_CHARACTERS,
    NEXT_CURSOR,
    SIZE_NOTE,
    Context,
    EntryPage,
    Tool,
    decode_ref_cursor,
    describe_argument,
    describe_list,
    describe_record,
    describe_text_member,
    encode_ref_cursor,
    encode_result,
    shorten_value,
)

Row = tuple[str, str]  # a reference, and the JSON text that follows it in its entry
CATALOG_GROUPS: Final[tuple[Group, ...]] = get_args(Group)
_MOST_GROUPS: Final = 100
_ENTITIES_AT_ONCE: Final = 2_000
_NO_FACTS: Final = Latest({}, {}, "", 0)
EVERY_KIND = "*"
_MOST_COUNTED = 2**31  # what both databases can count to
_PAGE: Final = 100  # for hosts that send no limit
# Largest total that each page counts: counting a million would take seconds.
COUNTED: Final = 10_000


class Selection(NamedTuple):
    """A selection of entities and facts of a source; None keeps all facts."""

    entities: EntityRange
    kept: frozenset[str] | None

    @property
    def read(self) -> EntityRange:
        """The entities to read: one more than wanted, to detect a next page."""
        limit = self.entities.limit
        return self.entities._replace(limit=None if limit is None else limit + 1)


async def stream_catalog_rows(
    source: DataSource, selection: Selection, context: Context
) -> AsyncGenerator[list[Row], None]:
    """Stream the entities with the catalog's own facts."""
    kept = selection.kept

    # Thousands of entities share a few of these texts.
    @lru_cache(maxsize=1024)
    def text(bits: int, time: int) -> str:
        facts = catalog.encode_catalog_facts(source.id, bits)
        return render_facts_end(
            facts if kept is None else _keep_facts(decode_members(facts), kept), time, {}
        )

    owners = catalog.needs_owner_bit(source.id)
    pages = stored_entities.stream_complying(context.database, selection.read, owners=owners)
    async for page in pages:
        yield [(ref, text(bits, time)) for ref, bits, time in page]


async def stream_tracked_rows(
    source: DataSource, selection: Selection, context: Context
) -> AsyncGenerator[list[Row], None]:
    """Stream the entities with stored facts or reasons."""
    kept = selection.kept
    names = [fact.name for fact in source.schema]
    all_names = frozenset(names)

    def text(item: Tracked) -> str:
        found, stored = decode_members(item.facts), store.reasons_by_place(item.reasons)
        if kept is None and not stored and all_names <= found.keys() and not item.stale:
            return render_facts_end(bytes(item.facts).decode(), item.brought_at, {})
        facts = bytes(item.facts).decode() if kept is None else _keep_facts(found, kept)
        shown = [name for name in found if kept is None or name in kept]
        why = store.explain_missing(names, found, stored, kept)
        return render_facts_end(facts, item.brought_at, why, build_stale_members(shown, item.stale))

    async for page in store.page_tracked(context.database, source, selection.read):
        yield [(item.ref, text(item)) for item in page]


async def stream_lacking_rows(
    source: DataSource, selection: Selection, context: Context
) -> AsyncGenerator[list[Row], None]:
    """Stream the entities that the source covers but has no value for."""
    if catalog.is_catalog_source(source.id):  # it has values for all entities
        return
    kept = selection.kept
    names = [fact.name for fact in source.schema]

    # Thousands of entities share a few of these texts.
    @lru_cache(maxsize=1024)
    def text(reasons: str) -> str:
        return render_facts_end(
            "{}", None, store.explain_missing(names, (), store.reasons_by_place(reasons), kept)
        )

    async for page in store.page_unknown(context.database, source, selection.read):
        yield [(ref, text(reasons)) for ref, reasons in page]


def _keep_facts(facts: dict[str, msgspec.Raw], kept: frozenset[str]) -> str:
    return encode_result({name: value for name, value in facts.items() if name in kept})


class FactChoice(NamedTuple):
    """A query to a source: the entities, the facts, and the form of the answer.

    `kept` names facts, None for all. `counted` and `group_by` ask only for counts; `of_unknown`
    asks for the entities without any known fact.
    """

    source: DataSource
    part: Condition
    where: object | None
    kept: frozenset[str] | None
    limit: int
    after: str
    counted: bool
    group_by: str | None
    of_unknown: bool


class _ChosenRow(NamedTuple):
    ref: str
    id: int
    latest: Latest


async def answer_choice(asked: FactChoice, context: Context) -> dict[str, Any]:
    """The members of the answer that follow the source name."""
    work = _Choosing(asked, context, await _read_choice_conditions(asked, context))
    return await work.done()


async def _read_choice_conditions(asked: FactChoice, context: Context) -> FactConditions:
    is_essential = asked.source is sources.ESSENTIAL_SOURCE
    own = [] if is_essential else [asked.source.id]
    if asked.where is None:
        found = selection.build_empty_conditions(own, documents=is_essential)
    else:
        found = await selection.read_conditions(asked.where, context, asked.source.id)
        found = found._replace(
            sources=sorted({*found.sources, *own}), reads_entity=found.reads_entity or is_essential
        )
    return found if is_essential else selection.build_known_conditions(asked.source, found)


class _Choosing:
    """Gathers the entities of one answer until there are enough."""

    def __init__(self, asked: FactChoice, context: Context, wanted: FactConditions) -> None:
        self._asked = asked
        self._context = context
        self._search = Search(asked.part, wanted, context.now)
        self._is_counted = asked.counted or asked.group_by is not None
        self._page = EntryPage(asked.limit)
        self._entries: list[dict[str, Any]] = []
        self._left_out = Counter[str]()
        self._last, self._more = "", False
        self._ids: list[int] = []
        self._values = Counter[str]()
        self._unknown = self._examined = self._stale = 0

    async def done(self) -> dict[str, Any]:
        database, search = self._context.database, self._search
        whole = self._is_counted or await selection.has_few_candidates(database, search.part)
        async with limit_time(LONGEST_SEARCH):
            async for rows, entities, states in selection.evaluate_candidates(
                database, search, self._asked.after
            ):
                if self._asked.source is sources.ESSENTIAL_SOURCE:
                    await sources.add_essential_facts(database, entities, [row.id for row in rows])
                for row, entity, state in zip(rows, entities, states, strict=True):
                    self._take(row.ref, row.id, entity, state)
                self._examined += len(rows)
                if self._more and not whole:
                    return self._shown({"examined": self._examined})
        told: dict[str, Any] = {}
        if self._is_counted:
            told = (await search.asked.age(database, self._context.now)).render()
        told |= {} if self._asked.after else {"totalCount": len(self._ids)}
        if self._asked.group_by is not None:
            groups = await self._groups(self._asked.group_by)
            groups.sort(key=lambda group: (-group[1], str(group[0])))
            told["groups"] = [
                {"value": shorten_value(value)[0], "count": count}
                for value, count in groups[:_MOST_GROUPS]
            ]
            if len(groups) > _MOST_GROUPS:
                told["otherGroups"] = len(groups) - _MOST_GROUPS
        return self._shown(told)

    def _take(self, ref: str, id_: int, entity: CheckedEntity, state: int) -> None:
        latest = entity.facts.get(self._asked.source.id, _NO_FACTS)
        self._unknown += state == UNKNOWN
        if state != (UNKNOWN if self._asked.of_unknown else PASS):
            return
        self._ids.append(id_)
        if self._is_counted:
            self._count(latest)
        elif not self._more:
            self._add(_ChosenRow(ref, id_, latest))

    def _count(self, latest: Latest) -> None:
        name = self._asked.group_by
        by_fact = name is not None and name not in CATALOG_GROUPS
        self._stale += name in latest.kept if by_fact else bool(latest.kept)
        if name is not None:
            value = latest.facts.get(name)
            values = value or [None] if isinstance(value, list) else [value]
            self._values.update(map(encode_result, values))

    def _add(self, row: _ChosenRow) -> None:
        names = [fact.name for fact in self._asked.source.schema]
        kept, facts = self._asked.kept, dict[str, Any]()
        for name, value in row.latest.facts.items():
            if kept is None and len(encode_result(value)) > LONGEST_VALUE:
                self._left_out[name] += 1
            elif kept is None or name in kept:
                facts[name] = value
        why = store.explain_missing(names, row.latest.facts, row.latest.reasons, kept)
        if self._asked.source is sources.ESSENTIAL_SOURCE:
            why = {}
        at = row.latest.brought_at
        entry = {
            "entityRef": row.ref,
            "facts": facts,
            "timestamp": None if at is None else iso(at),
            **build_stale_members(facts, row.latest.kept.keys()),
            "unknownReasons": why,
        }
        entry = {name: value for name, value in entry.items() if value or name == "facts"}
        if self._page.add(entry):
            self._entries.append(entry)
            self._last = row.ref
        else:
            self._more = True

    def _shown(self, told: Mapping[str, Any]) -> dict[str, Any]:
        entries = self._entries
        times = {entry.get("timestamp") for entry in entries}
        shared: dict[str, Any] = {"staleCount": self._stale} if self._stale else {}
        if len(entries) > 1 and len(times) == 1 and None not in times:
            shared["timestamp"] = times.pop()
            for entry in entries:
                del entry["timestamp"]
        if self._left_out:
            shared["leftOut"] = dict(self._left_out)
        if self._more:
            shared["nextCursor"] = encode_ref_cursor(self._last)
        return {"entities": entries, **told, "unknown": self._unknown, **shared}

    async def _groups(self, by: str) -> list[tuple[Any, int]]:
        if by in {fact.name for fact in self._asked.source.schema}:
            return [(msgspec.json.decode(text), n) for text, n in self._values.items()]
        found = Counter[str | None]()
        group = next(one for one in CATALOG_GROUPS if one == by)
        for start in range(0, len(self._ids), _ENTITIES_AT_ONCE):
            some = self._ids[start : start + _ENTITIES_AT_ONCE]
            database = self._context.database
            found.update(
                await related_entities.count_by_group(database, Among(some), group, len(some))
            )
        return list(found.items())


def require_group(source: DataSource, name: str) -> None:
    """Raise ToolError if entities cannot be grouped by this name."""
    facts = [fact.name for fact in source.schema if fact.type != "object"]
    if name not in facts and name not in CATALOG_GROUPS:
        known = ", ".join([*CATALOG_GROUPS, *facts[:100]])
        raise ToolError(f"groupBy cannot be {name[:100]}. Choose among: {known}.")


class AllArguments(Struct, forbid_unknown_fields=True):
    """A data source, and which of its entities."""

    data_source_id: sources.SourceId = msgspec.field(name="dataSourceId")
    kind: Annotated[
        str,
        describe_argument("Kind of the entities; `*` for every kind.", "component", min_length=1),
    ] = "component"
    namespace: (
        Annotated[
            str,
            describe_argument(
                "Namespace of the entities; any when left out.", "default", min_length=1
            ),
        ]
        | UnsetType
    ) = UNSET
    limit: (
        Annotated[
            int,
            describe_argument(
                "Most entities to return; all, or at /mcp a page, when left out.", 100, ge=1
            ),
        ]
        | UnsetType
    ) = UNSET
    cursor: (
        Annotated[
            str,
            describe_argument("nextCursor of the page before.", "component:default/payments-api"),
        ]
        | UnsetType
    ) = UNSET
    facts: (
        Annotated[
            list[str],
            describe_argument("Names of the facts to keep; all when left out.", ["hasOwner"]),
        ]
        | UnsetType
    ) = UNSET
    unknown: Annotated[
        bool,
        describe_argument(
            "Return instead the entities that the source is about and has no value of, each with "
            "empty facts and the reasons.",
            True,
        ),
    ] = False
    owner: (
        Annotated[str, describe_argument("With the groups below it; any when left out.", "team-a")]
        | UnsetType
    ) = UNSET
    where: (
        Annotated[
            dict[str, Any],
            describe_argument(
                "Condition as in find-entities; none when left out.",
                {"fact": "hasOwner", "operator": "equal", "value": False},
            ),
        ]
        | UnsetType
    ) = UNSET
    count: Annotated[bool, describe_argument("Numbers alone.", True)] = False
    group_by: (
        Annotated[
            str,
            describe_argument("Count by a fact, or as find-entities; none when left out.", "owner"),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="groupBy")

    @property
    def chooses(self) -> bool:
        """True if any argument beyond those of the original tool is given."""
        given = (self.owner, self.where, self.group_by)
        return self.count or any(one is not UNSET for one in given)


async def run_all_entities_facts(arguments: AllArguments, context: Context) -> str:
    """The facts of every tracked entity that the arguments select."""
    source = sources.find_source(arguments.data_source_id, context)
    if arguments.facts is not UNSET:
        sources.require_source_facts(source, arguments.facts)
    if arguments.chooses or source is sources.ESSENTIAL_SOURCE:
        return await _answer_chosen(source, arguments, context)
    chosen = _build_selection(arguments, context)
    known = stream_catalog_rows if catalog.is_catalog_source(source.id) else stream_tracked_rows
    rows = stream_lacking_rows if arguments.unknown else known
    # Joined once at the end: an answer may be many megabytes.
    texts = [f'{render_source_head(source)},"entities":[']
    limit, taken, last, more = chosen.entities.limit, 0, "", False
    room = MOST_PAGE_CHARACTERS if context.in_pages else None
    async with aclosing(rows(source, chosen, context)) as batches:
        async for found in batches:
            page = found if limit is None else found[: limit - taken]
            if room is not None:
                page, room = _fit_rows(page, room)
            more = len(page) < len(found)
            if page:
                texts += ["," if taken else "", _render_entries(page)]
                taken, last = taken + len(page), page[-1][0]
            if more:
                break
    if not taken and not chosen.entities.after:
        await selection.refuse_unknown_values(context.database, _render_kind(chosen.entities))
    tail = await _render_tail(arguments, source, chosen, context)
    cursor = f',"nextCursor":{encode_result(encode_ref_cursor(last))}' if more else ""
    return "".join([*texts, "]", tail, cursor, render_draft_mark(source), "}"])


async def _answer_chosen(source: DataSource, arguments: AllArguments, context: Context) -> str:
    """The answer in the form for agents."""
    entities, kept = _build_selection(arguments, context)
    given = {"kind": entities.kind, "namespace": entities.namespace, "owner": arguments.owner}
    searched = {name: value for name, value in given.items() if value not in (None, UNSET)}
    group_by = None if arguments.group_by is UNSET else arguments.group_by
    if group_by is not None:
        require_group(source, group_by)
    asked = FactChoice(
        source,
        await selection.build_selection_condition(context.database, searched),
        None if arguments.where is UNSET else arguments.where,
        kept,
        entities.limit or _MOST_COUNTED,
        entities.after,
        arguments.count,
        group_by,
        arguments.unknown,
    )
    answer = await answer_choice(asked, context)
    if answer.get("totalCount") == 0 and not answer.get("unknown"):
        await selection.refuse_unknown_values(context.database, _render_kind(entities))
    return (
        f"{render_source_head(source)},{encode_result(answer)[1:-1]}{render_draft_mark(source)}}}"
    )


def _render_kind(entities: EntityRange) -> dict[str, str]:
    """The kind to verify, if given; the namespace isn't verified, as a push may have emptied it."""
    return {} if entities.kind is None else {"kind": entities.kind}


async def _render_tail(
    arguments: AllArguments, source: DataSource, chosen: Selection, context: Context
) -> str:
    """The members with entity counts that follow the entities."""
    lacking, entities = _NO_UNKNOWN, chosen.entities
    is_page = entities.limit is not None
    wanted = is_page if arguments.unknown else not entities.after
    if wanted and not catalog.is_catalog_source(source.id):
        lacking = await store.count_unknown(context.database, source, entities, COUNTED + 1)
    if arguments.unknown:
        total = lacking.entities if lacking.is_whole else COUNTED + 1
        return _render_total(total) if is_page else ""
    members = ""
    if is_page:
        # Counts up to one more than is reported.
        if catalog.is_catalog_source(source.id):
            total = await stored_entities.count_matching(context.database, entities, COUNTED + 1)
        else:
            total = await store.count_tracked(context.database, source, entities, COUNTED + 1)
        members = _render_total(total)
    if lacking is not _NO_UNKNOWN:
        unknown: dict[str, Any] = {
            "count": min(lacking.entities, COUNTED),
            "reasons": lacking.reasons,
        }
        if not lacking.is_whole:
            unknown["more"] = True
        members += f',"unknownEntities":{encode_result(unknown)}'
    return members


def _render_total(count: int) -> str:
    return f',"totalCount":{count}' if count <= COUNTED else ""


def _render_entries(rows: list[Row]) -> str:
    joined = "".join([ref for ref, _ in rows])
    if '"' in joined or "\\" in joined:  # the only characters of a reference that JSON escapes
        rows = [(encode_result(ref)[1:-1], end) for ref, end in rows]
    return ",".join([f'{{"entityRef":"{ref}",{end}}}' for ref, end in rows])


def _fit_rows(rows: list[Row], room: int) -> tuple[list[Row], int | None]:
    """The first rows that fit into `room` characters, at least one row, and the room left."""
    for at, (ref, rest) in enumerate(rows):
        room -= len(ref) + len(rest)
        if room < 0 and at:
            return rows[:at], 0
    return rows, room


def _build_selection(arguments: AllArguments, context: Context) -> Selection:
    kind = None if arguments.kind == EVERY_KIND else arguments.kind.strip().lower()
    namespace = None if arguments.namespace is UNSET else arguments.namespace.strip().lower()
    after = "" if arguments.cursor is UNSET else decode_ref_cursor(arguments.cursor)
    limit = _PAGE if context.in_pages else None
    if arguments.limit is not UNSET:
        limit = min(arguments.limit, _MOST_COUNTED)
    kept = None if arguments.facts is UNSET else frozenset(arguments.facts)
    return Selection(EntityRange(kind, namespace, after, limit), kept)


_TOTAL = f"Entities in all pages; left out above {COUNTED:,}."
_SCALARS = ("string", "number", "boolean", "null")
_NUMBER = {"type": "integer"}
_NO_UNKNOWN = store.UnknownCount({}, 0, is_whole=True)

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
    output_schema=describe_record(
        {
            **COMMON,
            "entities": describe_list(describe_record(ENTRY, ("entityRef", "facts"))),
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
            "groups": describe_list(
                describe_record(
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
            "timestamp": describe_text_member("That of all entities of the page."),
            "nextCursor": NEXT_CURSOR,
            "totalCount": {"type": "integer", "description": _TOTAL},
        },
        ("dataSourceId", "entities"),
    ),
    run=run_all_entities_facts,
)
