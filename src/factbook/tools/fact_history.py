"""get-fact-history: past facts of data sources about an entity."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from factbook.catalog.store import stored_entities
from factbook.clock import iso, iso_or_none
from factbook.errors import ToolError
from factbook.facts import history
from factbook.facts.freshness import find_reason
from factbook.facts.history import HistoryEntry, HistoryPosition
from factbook.facts.schema import ANY_FACT
from factbook.tools import sources, tool
from factbook.tools.tool import (
    CUT_NOTE,
    MOST_READS,
    NEXT_CURSOR,
    SIZE_NOTE,
    Context,
    EntryPage,
    NameOrRefArguments,
    Tool,
    build_unknown_entity_error,
    decode_place,
    describe_argument,
    describe_list,
    describe_record,
    describe_text_member,
    encode_result,
    render_next_cursor,
    shorten_value,
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
    """The rows of history selected by the arguments, newest first."""
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
        most = page.wanted + 1  # one more tells whether there is more
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
        reasons = _pick_reasons(names - facts.keys(), reasons)
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


def _pick_reasons(names: frozenset[str], reasons: Mapping[str, str]) -> dict[str, str]:
    found = {name: find_reason(name, reasons) for name in sorted(names)}
    return {name: reason for name, reason in found.items() if reason is not None}


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

TOOL = Tool(
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
