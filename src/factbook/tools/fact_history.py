"""get-fact-history: past facts of data sources about an entity."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from factbook.catalog.store import collectable
from factbook.clock import iso, iso_or_none
from factbook.errors import ToolError
from factbook.facts import time_series
from factbook.facts.freshness import reason_of
from factbook.facts.reasons import EVERYTHING
from factbook.facts.time_series import HistoryEntry, HistoryPosition
from factbook.tools import sources, times
from factbook.tools.pages import CUT_NOTE, MOST_READS, EntryPage, cursor, place, shortened
from factbook.tools.result_schema import NEXT_CURSOR, SIZE_NOTE, array, record, text
from factbook.tools.tool import Context, NameOrRefArguments, Tool, argument, encode, unknown_entity


class FactHistoryArguments(NameOrRefArguments, forbid_unknown_fields=True, kw_only=True):
    """An entity, and which of its history."""

    data_source_id: (
        Annotated[
            str,
            argument(
                "Id of a data source, from get-data-source-discovery; all when left out.",
                "entity-metadata",
            ),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="dataSourceId")
    facts: (
        Annotated[
            list[str],
            argument("Names of the facts to keep; all when left out.", ["hasOwner"], min_length=1),
        ]
        | UnsetType
    ) = UNSET
    start: (
        Annotated[
            str,
            argument(
                f"The earliest time: {times.FORM}; the beginning when left out.",
                "2026-11-01",
                "2026-11-01T06:00:00Z",
            ),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="from")
    end: (
        Annotated[
            str,
            argument(
                f"The latest time: {times.FORM}; a date means all of it; no end when left out.",
                "2026-11-30",
                "2026-11-30T18:00:00Z",
            ),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="to")
    limit: Annotated[int, argument("Most rows to return.", 20, ge=1, le=200)] = 20
    cursor: (
        Annotated[str, argument("nextCursor of the page before.", "1795262400000/entity-metadata")]
        | UnsetType
    ) = UNSET


class _HistoryQuery(NamedTuple):
    """A query for history; `source_ids` and `names` are None if unrestricted."""

    source_ids: list[str] | None
    names: frozenset[str] | None
    entity_id: int
    start: int | None
    end: int | None


async def run(arguments: FactHistoryArguments, context: Context) -> str:
    """The rows of history selected by the arguments, newest first."""
    source_ids, names = _sources(arguments, context)
    start = None if arguments.start is UNSET else times.start(arguments.start, "from")
    end = None if arguments.end is UNSET else times.end(arguments.end, "to")
    if start is not None and end is not None and start > end:
        raise ToolError("from is later than to. Give from the earlier of the two times.")
    after = None if arguments.cursor is UNSET else HistoryPosition(*place(arguments.cursor, 2))
    ref = arguments.ref()
    entity_id = await collectable.id_of(context.database, ref)
    if entity_id is None:
        raise await unknown_entity(context.database, ref)
    asked = _HistoryQuery(source_ids, names, entity_id, start, end)
    page = EntryPage(arguments.limit)
    last = await _fill(page, asked, after, context)
    rows = ",".join(page.texts)
    return f'{{"entityRef":{encode(ref)},"history":[{rows}]{cursor(last)}}}'


def _sources(
    arguments: FactHistoryArguments, context: Context
) -> tuple[list[str] | None, frozenset[str] | None]:
    names = None if arguments.facts is UNSET else frozenset(arguments.facts)
    if arguments.data_source_id is UNSET:
        return None if names is None else sources.having(names, context), names
    source = sources.one(arguments.data_source_id, context)
    sources.check_facts(source, names or ())
    return [source.id], names


async def _fill(
    page: EntryPage, asked: _HistoryQuery, last: HistoryPosition | None, context: Context
) -> HistoryPosition | None:
    """Add rows to the page; returns the position of its end, None if nothing follows."""
    ids, names, entity_id, start, end = asked
    for _ in range(MOST_READS):
        most = page.wanted + 1  # one more tells whether there is more
        rows = await time_series.history_page(
            context.database, ids, entity_id, start, end, last, most
        )
        for row in rows:
            entry = _entry(row, names, context)
            if entry is not None and not page.add(entry):
                return last
            last = HistoryPosition(row.written_at, row.source_id)
        if len(rows) < most:
            return None
    return last


def _entry(
    row: HistoryEntry, names: frozenset[str] | None, context: Context
) -> dict[str, Any] | None:
    """The row in the form shown to clients; None if it has none of the requested facts."""
    source = context.sources.get(row.source_id)
    if source is None:  # no longer configured
        return None
    facts: dict[str, Any] = msgspec.json.decode(row.facts)
    reasons: dict[str, str] = msgspec.json.decode(row.reasons)
    if names is None:
        reasons = {path or EVERYTHING: reason for path, reason in reasons.items()}
    else:
        facts = {name: facts[name] for name in facts if name in names}
        reasons = _reasons_of(names - facts.keys(), reasons)
        if not facts and not reasons:
            return None
    shown = {name: shortened(value) for name, value in facts.items()}
    entry = {
        "timestamp": iso(row.written_at),
        "confirmedAt": iso_or_none(row.confirmed_at),
        "dataSourceId": row.source_id,
        "version": row.version,
        "draft": sources.is_draft(source, row.version),
        "facts": {name: value for name, (value, _) in shown.items()},
        "unknownReasons": reasons,
        "cut": {name: count for name, (_, count) in shown.items() if count is not None},
    }
    return {key: value for key, value in entry.items() if value or key == "facts"}


def _reasons_of(names: frozenset[str], reasons: Mapping[str, str]) -> dict[str, str]:
    found = {name: reason_of(name, reasons) for name in sorted(names)}
    return {name: reason for name, reason in found.items() if reason is not None}


_ROW = record(
    {
        "timestamp": text("When it was written, ISO 8601."),
        "confirmedAt": text("The last time after that at which the data source found the same."),
        "dataSourceId": {"type": "string"},
        "version": text("Of the data source that wrote the row."),
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
    output_schema=record(
        {
            "entityRef": text("kind:namespace/name, in lower case."),
            "history": array(_ROW),
            "nextCursor": NEXT_CURSOR,
        },
        ("entityRef", "history"),
    ),
    run=run,
)
