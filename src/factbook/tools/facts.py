"""Facts of one entity: from a data source, as figures in fixed shapes, and their history.

Shapes are filled from the stored facts of sources. Sources that fill a shape name their facts after
it: `codehost.pullRequests.total`.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.catalog import filters
from factbook.catalog.store import stored_entities
from factbook.clock import iso, iso_or_none
from factbook.errors import ToolError
from factbook.facts import freshness, history, schema, store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Latest, find_reason
from factbook.facts.history import HistoryEntry, HistoryPosition
from factbook.facts.schema import (
    ANY_FACT,
    NEVER_COLLECTED,
    NO_ANNOTATION,
    NOT_APPLICABLE,
    NOT_CONFIGURED,
    NOT_SENT,
    Shape,
    reason_word,
)
from factbook.facts.store import StoredFacts
from factbook.integrations import catalog
from factbook.tools import sources, tool
from factbook.tools.sources import REASONS_ABOUT_ANNOTATIONS, describe_annotations
from factbook.tools.tool import (
    CUT_NOTE,
    MOST_READS,
    NEXT_CURSOR,
    SIZE_NOTE,
    Context,
    EntityArguments,
    EntryPage,
    Name,
    NameOrRefArguments,
    Namespace,
    Schema,
    Tool,
    build_canonical_ref,
    build_unknown_entity_error,
    decode_place,
    describe_argument,
    describe_list,
    describe_record,
    describe_text_member,
    encode_result,
    find_existing_entity,
    render_next_cursor,
    shorten_value,
)

_LEFT_OUT = f"{NO_ANNOTATION}: the entityFilter of the data source leaves the entity out"

_NONE: Final[Mapping[str, Any]] = {}


class OneArguments(EntityArguments, forbid_unknown_fields=True, kw_only=True):
    """One entity and a data source."""

    data_source_id: sources.SourceId = msgspec.field(name="dataSourceId")


async def run_entity_facts(arguments: OneArguments, context: Context) -> str:
    """Every raw fact of the source about the entity."""
    source = sources.find_source(arguments.data_source_id, context)
    ref = arguments.ref()
    if catalog.is_catalog_source(source.id):
        owners = catalog.needs_owner_bit(source.id)
        found = await find_existing_entity(context.database, ref, owners=owners)
        facts = catalog.encode_catalog_facts(source.id, found.compliance)
        return _render_entity_facts(source, found.ref, facts, found.updated_at, {})
    if source is sources.ESSENTIAL_SOURCE:
        essential = await sources.find_essential_facts(context.database, ref)
        if essential is None:
            raise await build_unknown_entity_error(context.database, ref)
        values, time = essential
        return _render_entity_facts(source, ref, encode_result(values), time, {})
    known = await store.find_latest_by_ref(context.database, source.id, ref)
    if known is None:
        raise await build_unknown_entity_error(context.database, ref)
    reasons = await _list_missing_reasons(source, ref, known, context)
    facts = known.facts or "{}"
    stale = build_stale_members(decode_members(facts), known.stale) if known.stale else _NONE
    return _render_entity_facts(source, ref, facts, known.brought_at, reasons, stale)


async def _list_missing_reasons(
    source: DataSource, ref: str, known: StoredFacts, context: Context
) -> Mapping[str, str]:
    if known.facts is None:
        entity = await _read_entity_document(ref, context)
        if filters.matches_filter(source.selection, entity):
            return {ANY_FACT: NEVER_COLLECTED}
        if not filters.matches_filter(source.ownership, entity):
            scope = f"the data source is only about entities of {source.owner}"
            return {ANY_FACT: f"{NOT_APPLICABLE}: {scope}"}
        about = describe_annotations(source, entity)
        lacks_annotation = about is not None and about.startswith("no ")
        return {ANY_FACT: f"{NO_ANNOTATION}: {about}" if lacks_annotation else _LEFT_OUT}
    names = [fact.name for fact in source.schema]
    shown = store.explain_missing(names, decode_members(known.facts), known.reasons, None)
    if not REASONS_ABOUT_ANNOTATIONS.intersection(map(reason_word, shown.values())):
        return shown
    entity = await _read_entity_document(ref, context)
    return {at: sources.explain_reason(why, source, entity) for at, why in shown.items()}


async def _read_entity_document(ref: str, context: Context) -> dict[str, Any]:
    found = await stored_entities.read_entity(context.database, ref)
    return msgspec.json.decode(found.render()) if found else {}


def _render_entity_facts(
    source: DataSource,
    ref: str,
    facts: str,
    time: int | None,
    reasons: Mapping[str, str],
    stale: Mapping[str, Any] = _NONE,
) -> str:
    entry = f'"entityRef":{encode_result(ref)},{render_facts_end(facts, time, reasons, stale)}'
    return f"{render_source_head(source)},{entry}{render_draft_mark(source)}}}"


def render_draft_mark(source: DataSource) -> str:
    """The result member that marks facts of a draft."""
    return ',"draft":true' if source.draft else ""


def render_facts_end(
    facts: str,
    time: int | None,
    reasons: Mapping[str, str],
    stale: Mapping[str, Any] = _NONE,
) -> str:
    """The members after the reference as JSON text.

    Facts, their time, `build_stale_members` of them, and reasons for missing ones.
    """
    timestamp = "" if time is None else f',"timestamp":"{iso(time)}"'
    old = f",{encode_result(stale)[1:-1]}" if stale else ""
    why = f',"unknownReasons":{encode_result(reasons)}' if reasons else ""
    return f'"facts":{facts}{timestamp}{old}{why}'


def build_stale_members(facts: Collection[str], stale: Set[str]) -> dict[str, Any]:
    """The result members that mark stale values among the facts; none if all are current."""
    if not stale or stale.isdisjoint(facts):
        return {}
    some = freshness.find_stale(facts, stale)
    return {"stale": True, "staleFacts": some} if some else {"stale": True}


def render_source_head(source: DataSource) -> str:
    """The beginning of a result about the source."""
    return _render_head(source.id, source.title)


@lru_cache(maxsize=1024)
def _render_head(id_: str, title: str) -> str:
    return f'{{"dataSourceId":{encode_result(id_)},"dataSourceTitle":{encode_result(title)}'


decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

STALE: Final[Schema] = {
    "stale": {
        "type": "boolean",
        "description": "The data source could not renew values when it last tried, or is overdue.",
    },
    "staleFacts": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Which values are stale, if not all.",
    },
}
ENTRY: Final[Schema] = {
    "entityRef": describe_text_member("kind:namespace/name, in lower case."),
    "facts": {"type": "object", "description": "Fact name to value."},
    "timestamp": describe_text_member("Last write that brought a value, ISO 8601."),
    **STALE,
    "unknownReasons": {
        "type": "object",
        "description": "Why facts have no value, by the name of a fact or of the group that it is "
        "in; `*` stands for all others. A word, and maybe more after a colon.",
        "additionalProperties": {"type": "string"},
    },
}
COMMON: Final[Schema] = {
    "dataSourceId": {"type": "string"},
    "dataSourceTitle": {"type": "string"},
    "draft": {"type": "boolean", "description": "The source is a draft."},
}

ENTITY_FACTS_TOOL = Tool(
    name="get-entity-facts",
    title="Facts about one entity",
    description=(
        "Returns every raw fact of one data source about one catalog entity. Needs a dataSourceId "
        "from get-data-source-discovery; for many entities use get-all-entities-facts, for ready "
        "figures the get-…-metrics tools. kind defaults to component, namespace to default. "
        "A fact without a value is not among the facts but has its reason in unknownReasons. "
        "Without any value there is no timestamp."
    ),
    arguments=OneArguments,
    output_schema=describe_record({**COMMON, **ENTRY}, ("dataSourceId", "entityRef", "facts")),
    run=run_entity_facts,
)


# Reasons that rank below all others, which have 0; the least useful has the highest number.
_HELPLESS_RANKS: Final = {NOT_APPLICABLE: 1, NOT_SENT: 2, NEVER_COLLECTED: 3, NO_ANNOTATION: 4}
_UNKNOWN = (
    "Whatever cannot be determined is `unknown` or left out, with the reason in unknownReasons; "
    "no figure is ever made up."
)
_NEEDED = (
    "While one of these numbers is unknown the answer is an error, whose text has the values that "
    "are known, why the others are not, and what helps."
)
_DEFAULTS = "kind defaults to component, namespace to default."


class RepositoryArguments(Struct, forbid_unknown_fields=True):
    """A component."""

    name: Name
    namespace: Namespace = UNSET
    limit: (
        Annotated[int, describe_argument("Most filePaths to return; all when left out.", 200, ge=1)]
        | UnsetType
    ) = UNSET

    def ref(self) -> str:
        """The canonical reference named by the arguments."""
        return build_canonical_ref(UNSET, self.namespace, self.name)


def _build_metric_tool(
    name: str, title: str, shape: Shape, about: str, arguments: type[Struct]
) -> Tool:
    async def run(
        given: EntityArguments | NameOrRefArguments | RepositoryArguments, context: Context
    ) -> str:
        result = await _fill_shape(shape, given.ref(), context)
        if isinstance(given, RepositoryArguments) and given.limit is not UNSET:
            result["filePaths"] = list(cast("list[str]", result["filePaths"]))[: given.limit]
        return encode_result(result)

    unknown = _NEEDED if schema.needs_values(shape) else _UNKNOWN
    return Tool(name, title, f"{about} {unknown}", arguments, schema.shape_schema(shape), run)


async def _fill_shape(shape: Shape, ref: str, context: Context) -> dict[str, object]:
    await find_existing_entity(context.database, ref)
    sources, entity = context.sources.values(), None
    latest = await store.list_latest_by_ref(context.database, ref)
    able = [source for source in sources if _fills_shape(source, shape)]
    # The filter of a source matters while it has stored nothing.
    if any(source.id not in latest for source in able):
        found = await stored_entities.read_entity(context.database, ref)
        entity = found and msgspec.json.decode(found.render())
    result = fill_from_latest(shape, sources, latest, entity)
    about = {reason_word(one) for one in cast("dict[str, str]", result["unknownReasons"]).values()}
    if about & REASONS_ABOUT_ANNOTATIONS:
        if entity is None and (found := await stored_entities.read_entity(context.database, ref)):
            entity = msgspec.json.decode(found.render())
        result |= _list_details(shape, sources, entity or {})
    return result


def _list_details(
    shape: Shape, sources: Iterable[DataSource], entity: Mapping[str, Any]
) -> dict[str, object]:
    """The annotations that the shape's sources use, with the entity's values."""
    able = [source for source in sources if _fills_shape(source, shape)]
    found = {one.id: about for one in able if (about := describe_annotations(one, entity))}
    return {"unknownDetails": found} if found else {}


def fill_from_latest(
    shape: Shape,
    sources: Iterable[DataSource],
    latest: Mapping[str, Latest],
    entity: Mapping[str, Any] | None,
) -> dict[str, object]:
    """The result for one entity, from the latest facts by source id.

    If several sources have a value, the first one wins; those of an owner come last. `entity` has
    the form that the catalog shows; it is used only for sources that have stored nothing about it,
    and may be None if there is none. Raises ToolError like `schema.fill_shape`.
    """
    able = _list_able_sources(shape, sources, latest, entity)
    values: dict[str, object] = {}
    reasons: dict[str, str] = {}
    times: dict[str, int] = {}
    stale = list[str]()
    for member in shape.members:
        for path, _ in member.paths:
            name = f"{shape.name}.{path}"
            asked = [one for one in able if any(fact.name == name for fact in one.schema)]
            holders = (
                source
                for source in asked
                if source.id in latest and name in latest[source.id].facts
            )
            holder = next(holders, None)
            if holder is None:
                reasons[path] = _explain_missing(name, asked, latest, entity)
                continue
            found = latest[holder.id]
            values[path] = found.facts[name]
            time = found.kept.get(name, found.written_at)
            stale += [path] if name in found.kept else []
            times[member.name] = min(time, times.get(member.name, time))
    collected_at = {name: iso(time) for name, time in times.items()}
    filled = schema.fill_shape(shape, values, reasons, collected_at)
    return filled | build_stale_members(values, frozenset(stale))


def _list_able_sources(
    shape: Shape,
    sources: Iterable[DataSource],
    latest: Mapping[str, Latest],
    entity: Mapping[str, Any] | None,
) -> list[DataSource]:
    """The sources of the shape, except those of other owners without stored facts.

    Sources of an owner come last: no group can override a source defined for everybody.
    """
    able = [
        source
        for source in sources
        if _fills_shape(source, shape)
        and (
            source.id in latest
            or entity is None
            or source.owner is None
            or filters.matches_filter(source.ownership, dict(entity))
        )
    ]
    return sorted(able, key=lambda source: source.owner is not None)


def _fills_shape(source: DataSource, shape: Shape) -> bool:
    return any(fact.name.startswith(f"{shape.name}.") for fact in source.schema)


def _explain_missing(
    name: str,
    asked: list[DataSource],
    latest: Mapping[str, Latest],
    entity: Mapping[str, Any] | None,
) -> str:
    """The most actionable reason for a missing value.

    A source that failed may still have the value; nothing can be done about a source that has no
    such value, or that the entity does not point to.
    """
    reasons = [_find_reason(name, source, latest, entity) for source in asked]
    return min(
        reasons,
        key=lambda reason: _HELPLESS_RANKS.get(reason_word(reason), 0),
        default=NOT_CONFIGURED,
    )


def _find_reason(
    name: str,
    source: DataSource,
    latest: Mapping[str, Latest],
    entity: Mapping[str, Any] | None,
) -> str:
    stored = latest.get(source.id)
    if stored is not None:
        return find_reason(name, stored.reasons) or NEVER_COLLECTED
    if entity is not None and not filters.matches_filter(source.selection, dict(entity)):
        return NO_ANNOTATION
    return NEVER_COLLECTED


async def _run_compliance(arguments: EntityArguments, context: Context) -> str:
    """The compliance shape of the entity, as it is in the catalog now."""
    found = await find_existing_entity(context.database, arguments.ref(), owners=True)
    values = catalog.list_compliance_values(found.compliance)
    return encode_result(schema.fill_shape(schema.COMPLIANCE, values, {}, {"": iso(context.now)}))


METRIC_TOOLS: tuple[Tool, ...] = (
    _build_metric_tool(
        "get-codehost-metrics",
        "Code-host metrics of an entity",
        schema.CODEHOST,
        "Returns pull request, merge time (hours), issue, collaboration, branch protection and "
        "code review figures of the repository behind a catalog entity. Give exactly one of name "
        f"and entityRef; both are accepted when they mean the same entity. {_DEFAULTS}",
        NameOrRefArguments,
    ),
    _build_metric_tool(
        "get-security-metrics",
        "Security metrics of an entity",
        schema.SECURITY,
        "Returns open scanner issues by severity, dependency alerts and branch protection of a "
        "catalog entity. Give exactly one of name and entityRef; both are accepted when they mean "
        f"the same entity. {_DEFAULTS}",
        NameOrRefArguments,
    ),
    _build_metric_tool(
        "get-incident-metrics",
        "Incident metrics of an entity",
        schema.INCIDENT,
        "Returns incident counts, mean times to resolve and to acknowledge (seconds), up time "
        f"(percent) and the set-up of the service behind a catalog entity. {_DEFAULTS}",
        EntityArguments,
    ),
    _build_metric_tool(
        "get-observability-metrics",
        "Observability metrics of an entity",
        schema.OBSERVABILITY,
        "Returns the numbers of service level objectives and of monitors of an entity. "
        f"{_DEFAULTS}",
        EntityArguments,
    ),
    Tool(
        name="get-entity-compliance",
        title="Compliance of an entity",
        description=(
            "Says whether a catalog entity has a title, description, tags, owner, documentation "
            "and relations. Read from the catalog at the moment of the call. kind defaults to "
            "component, namespace to default. A value that cannot be determined is `unknown`, with "
            "the reason in unknownReasons."
        ),
        arguments=EntityArguments,
        output_schema=schema.shape_schema(schema.COMPLIANCE),
        run=_run_compliance,
    ),
    _build_metric_tool(
        "get-repository-info",
        "Files of an entity's repository",
        schema.REPOSITORY,
        "Returns the file paths, their number and their types of the repository behind a "
        f"component. namespace defaults to default. {SIZE_NOTE}; `limit` shortens filePaths.",
        RepositoryArguments,
    ),
)


class FactHistoryArguments(NameOrRefArguments, forbid_unknown_fields=True, kw_only=True):
    """An entity, and which of its history."""

    data_source_id: (
        Annotated[
            str,
            describe_argument(
                "Id of a data source, from get-data-source-discovery; all when left out.",
                "entity-metadata",
            ),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="dataSourceId")
    facts: (
        Annotated[
            list[str],
            describe_argument(
                "Names of the facts to keep; all when left out.", ["hasOwner"], min_length=1
            ),
        ]
        | UnsetType
    ) = UNSET
    start: (
        Annotated[
            str,
            describe_argument(
                f"The earliest time: {tool.TIME_FORM}; the beginning when left out.",
                "2026-11-01",
                "2026-11-01T06:00:00Z",
            ),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="from")
    end: (
        Annotated[
            str,
            describe_argument(
                f"The latest time: {tool.TIME_FORM}; a date means all of it; no end when left out.",
                "2026-11-30",
                "2026-11-30T18:00:00Z",
            ),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="to")
    limit: Annotated[int, describe_argument("Most rows to return.", 20, ge=1, le=200)] = 20
    cursor: (
        Annotated[
            str,
            describe_argument("nextCursor of the page before.", "1795262400000/entity-metadata"),
        ]
        | UnsetType
    ) = UNSET


class _HistoryQuery(NamedTuple):
    """A query for history; `source_ids` and `names` are None if unrestricted."""

    source_ids: list[str] | None
    names: frozenset[str] | None
    entity_id: int
    start: int | None
    end: int | None


async def run_fact_history(arguments: FactHistoryArguments, context: Context) -> str:
    """The history rows that the arguments select, newest first."""
    source_ids, names = _select_sources(arguments, context)
    start = None if arguments.start is UNSET else tool.parse_start(arguments.start, "from")
    end = None if arguments.end is UNSET else tool.parse_end(arguments.end, "to")
    if start is not None and end is not None and start > end:
        raise ToolError("from is later than to. Give from the earlier of the two times.")
    after = (
        None if arguments.cursor is UNSET else HistoryPosition(*decode_place(arguments.cursor, 2))
    )
    ref = arguments.ref()
    entity_id = await stored_entities.read_entity_id(context.database, ref)
    if entity_id is None:
        raise await build_unknown_entity_error(context.database, ref)
    asked = _HistoryQuery(source_ids, names, entity_id, start, end)
    page = EntryPage(arguments.limit)
    last = await _fill_history(page, asked, after, context)
    rows = ",".join(page.texts)
    return f'{{"entityRef":{encode_result(ref)},"history":[{rows}]{render_next_cursor(last)}}}'


def _select_sources(
    arguments: FactHistoryArguments, context: Context
) -> tuple[list[str] | None, frozenset[str] | None]:
    names = None if arguments.facts is UNSET else frozenset(arguments.facts)
    if arguments.data_source_id is UNSET:
        return None if names is None else sources.list_sources_with_facts(names, context), names
    source = sources.find_source(arguments.data_source_id, context)
    sources.require_source_facts(source, names or ())
    return [source.id], names


async def _fill_history(
    page: EntryPage, asked: _HistoryQuery, last: HistoryPosition | None, context: Context
) -> HistoryPosition | None:
    """Add rows to the page; returns the position of its end, None if nothing follows."""
    ids, names, entity_id, start, end = asked
    for _ in range(MOST_READS):
        most = page.wanted + 1  # one extra row shows whether more follow
        rows = await history.page_history(context.database, ids, entity_id, start, end, last, most)
        for row in rows:
            entry = _render_history_row(row, names, context)
            if entry is not None and not page.add(entry):
                return last
            last = HistoryPosition(row.written_at, row.source_id)
        if len(rows) < most:
            return None
    return last


def _render_history_row(
    row: HistoryEntry, names: frozenset[str] | None, context: Context
) -> dict[str, Any] | None:
    """The row in the form shown to clients; None if it has none of the requested facts."""
    source = context.sources.get(row.source_id)
    if source is None:  # no longer configured
        return None
    facts: dict[str, Any] = msgspec.json.decode(row.facts)
    reasons: dict[str, str] = msgspec.json.decode(row.reasons)
    if names is None:
        reasons = {path or ANY_FACT: reason for path, reason in reasons.items()}
    else:
        facts = {name: facts[name] for name in facts if name in names}
        missing = sorted(names - facts.keys())
        reasons = {name: why for name in missing if (why := find_reason(name, reasons)) is not None}
        if not facts and not reasons:
            return None
    shown = {name: shorten_value(value) for name, value in facts.items()}
    entry = {
        "timestamp": iso(row.written_at),
        "confirmedAt": iso_or_none(row.confirmed_at),
        "dataSourceId": row.source_id,
        "version": row.version,
        "draft": sources.is_draft_version(source, row.version),
        "facts": {name: value for name, (value, _) in shown.items()},
        "unknownReasons": reasons,
        "cut": {name: count for name, (_, count) in shown.items() if count is not None},
    }
    return {key: value for key, value in entry.items() if value or key == "facts"}


_ROW = describe_record(
    {
        "timestamp": describe_text_member("When it was written, ISO 8601."),
        "confirmedAt": describe_text_member(
            "The last time after that at which the data source found the same."
        ),
        "dataSourceId": {"type": "string"},
        "version": describe_text_member("Of the data source that wrote the row."),
        "draft": {"type": "boolean", "description": "The data source was a draft."},
        "facts": {"type": "object", "description": "Fact name to value."},
        "unknownReasons": {
            "type": "object",
            "description": "Why facts have no value, by the name of a fact or of the group that it "
            "is in; `*` stands for all others.",
        },
        "cut": {
            "type": "object",
            "description": "Fact name to the number of items or characters, of facts whose value "
            "is cut short.",
        },
    },
    ("timestamp", "dataSourceId", "version", "facts"),
)

FACT_HISTORY_TOOL = Tool(
    name="get-fact-history",
    title="History of an entity's facts",
    description=(
        "Returns what data sources wrote about one catalog entity in the past, newest first. What "
        "is found again unchanged is no new row: confirmedAt is when it last was. "
        "unknownReasons says why facts had no value then; a fact with neither value nor reason was "
        "kept as it was. Give exactly one of name and entityRef. kind defaults to component, "
        "namespace to default. dataSourceId is from get-data-source-discovery; for the latest "
        f"facts use get-entity-facts. {CUT_NOTE}. {SIZE_NOTE}; a page has up to `limit` rows, "
        "fewer when they are long, and `cursor` asks for the next."
    ),
    arguments=FactHistoryArguments,
    output_schema=describe_record(
        {
            "entityRef": describe_text_member("kind:namespace/name, in lower case."),
            "history": describe_list(_ROW),
            "nextCursor": NEXT_CURSOR,
        },
        ("entityRef", "history"),
    ),
    run=run_fact_history,
)
