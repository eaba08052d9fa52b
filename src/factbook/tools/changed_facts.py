"""get-changed-facts: changes of facts, with the values before and after."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.catalog.store.changes import Past, PastChanges
from factbook.clock import iso
from factbook.facts.freshness import reason_of
from factbook.facts.history_queries import FactChange, FactChangePage
from factbook.tools import change_pages, sources, times
from factbook.tools.all_entities_facts import EVERY_KIND
from factbook.tools.change_pages import ChangeCursor, ChangeQuery, Found
from factbook.tools.pages import CUT_NOTE, MOST_READS, EntryPage, shortened
from factbook.tools.result_schema import NEXT_CURSOR, SIZE_NOTE, array, record, text
from factbook.tools.tool import Context, Tool, argument, encode


class ChangedFactsArguments(Struct, forbid_unknown_fields=True, kw_only=True):
    """Since when, and of what."""

    since: Annotated[
        str,
        argument(
            f"The earliest time: {times.FORM}; or how long ago, such as 90m, 24h, 7d or 2w.",
            "7d",
            "2026-11-01",
            "2026-11-01T06:00:00Z",
        ),
    ]
    data_source_id: (
        Annotated[
            str,
            argument(
                "Id of a data source, from get-data-source-discovery, or `catalog` for changes of "
                "the entities themselves; all when left out.",
                "entity-metadata",
            ),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="dataSourceId")
    kind: (
        Annotated[
            str,
            argument("Kind of the entities; every kind when left out.", "component", min_length=1),
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, argument("Most changes to return.", 50, ge=1, le=200)] = 50
    cursor: (
        Annotated[
            str, argument("nextCursor of the page before.", "1795262400000/entity-metadata/7")
        ]
        | UnsetType
    ) = UNSET


async def run(arguments: ChangedFactsArguments, context: Context) -> str:
    """The changes selected by the arguments, oldest first."""
    source_id = None
    if arguments.data_source_id is not UNSET:
        source_id = arguments.data_source_id
        if source_id != change_pages.ID:
            source_id = sources.one(source_id, context).id
    since = times.since(arguments.since, "since", context.now)
    asked = ChangeQuery(since, source_id, _kind(arguments))
    places = change_pages.start(since)
    if arguments.cursor is not UNSET:
        # With `since` as a duration, what was the first place may be too early by now.
        given = change_pages.places_of(arguments.cursor)
        places = ChangeCursor(max(places.facts, given.facts), max(places.catalog, given.catalog))
    page = EntryPage(arguments.limit)
    last = await _fill(page, asked, places, context)
    changes = ",".join(page.texts)
    return (
        f'{{"since":{encode(iso(since))},"changes":[{changes}]{change_pages.written(last, asked)}}}'
    )


def _kind(arguments: ChangedFactsArguments) -> str | None:
    if arguments.kind is UNSET or arguments.kind == EVERY_KIND:
        return None
    return arguments.kind.strip().lower()


async def _fill(
    page: EntryPage, asked: ChangeQuery, places: ChangeCursor, context: Context
) -> ChangeCursor | None:
    """Add changes to the page; returns the position of its end, None if nothing follows."""
    for _ in range(MOST_READS):
        changed, past = await change_pages.of_both(asked, places, page.wanted, context)
        # Behind the end of what was read of one, the other waits, so that time never goes back.
        ends = [read.more[0] for read in (changed, past) if read.more is not None]
        for time, one in change_pages.in_order(changed, past):
            if ends and time > min(ends):
                places = _until(places, changed, past, min(ends))
                break
            if not await _put(page, one, context):
                return places
            if isinstance(one, Past):
                places = places._replace(catalog=one.place)
            else:
                places = places._replace(facts=one.place)
        else:
            if changed.more is None and past.more is None:
                return None
            places = ChangeCursor(changed.more or places.facts, past.more or places.catalog)
        if page.wanted == 0:
            return places
    return places


def _until(
    places: ChangeCursor, changed: FactChangePage, past: PastChanges, end: int
) -> ChangeCursor:
    """Advance the positions, one or both, of which everything up to `end` has been read."""
    if changed.more is not None and changed.more.written_at == end:
        places = places._replace(facts=changed.more)
    if past.more is not None and past.more.created_at == end:
        places = places._replace(catalog=past.more)
    return places


async def _put(page: EntryPage, one: Found, context: Context) -> bool:
    """Return true if the change is on the page, or has nothing to report."""
    if isinstance(one, Past):
        return page.add(change_pages.entry(one))
    is_told = one.source_id in context.sources and bool(one.facts)
    return not is_told or page.add(_entry(one, context))


def _entry(change: FactChange, context: Context) -> dict[str, Any]:
    draft = sources.is_draft(context.sources[change.source_id], change.version)
    reasons = {
        name: reason_of(name, change.reasons)
        for name, (_, after) in change.facts.items()
        if after is None
    }
    entry = {
        "timestamp": iso(change.written_at),
        "dataSourceId": change.source_id,
        "version": change.version,
        "draft": draft,
        "entityRef": change.ref,
        "facts": {name: _from_to(*values) for name, values in change.facts.items()},
        "unknownReasons": {name: reason for name, reason in reasons.items() if reason},
    }
    return {key: value for key, value in entry.items() if value}


def _from_to(before: object, after: object) -> dict[str, Any]:
    """The values before and after; for lists too long to show, also added and removed items."""
    values = {"from": before, "to": after}
    if any(shortened(value)[1] is not None for value in values.values()):
        values |= _came_and_went(before, after)
    shown = {name: shortened(value) for name, value in values.items()}
    cut = {name: count for name, (_, count) in shown.items() if count is not None}
    return {name: value for name, (value, _) in shown.items()} | ({"cut": cut} if cut else {})


def _came_and_went(before: object, after: object) -> dict[str, object]:
    if not isinstance(before, list) or not isinstance(after, list):
        return {}
    was, now = ([_key(item) for item in items] for items in (before, after))
    old, new = set(was), set(now)
    return {
        "added": [item for item, key in zip(after, now, strict=True) if key not in old],
        "removed": [item for item, key in zip(before, was, strict=True) if key not in new],
    }


def _key(item: object) -> object:
    """A key that distinguishes items; encoding each of many texts would be slow."""
    return item if isinstance(item, str) else (encode(item),)


_CHANGE = record(
    {
        "timestamp": text("ISO 8601."),
        "dataSourceId": {"type": "string"},
        "version": text("Of the data source that wrote the new values."),
        "draft": {"type": "boolean", "description": "The data source was a draft."},
        "entityRef": text("kind:namespace/name, in lower case."),
        "change": {
            "type": "string",
            "enum": ["added", "updated", "removed"],
            "description": "What happened to the entity, in changes of `catalog`.",
        },
        "set": text("The set that was pushed."),
        "revision": {"type": "integer", "description": "Its revision."},
        "by": text("Who pushed it."),
        "fields": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Fields of an updated entity that changed, 20 at most.",
        },
        "facts": {
            "type": "object",
            "description": "Fact name to what changed.",
            "additionalProperties": {
                "type": "object",
                "description": "from and to have the values, null for none. Where a long list is "
                "cut short, added and removed have the items that came and went. cut has the "
                "number of items or characters of each of these that is cut short.",
            },
        },
        "unknownReasons": {
            "type": "object",
            "description": "Fact name to why it has no value any more.",
        },
    },
    ("timestamp", "dataSourceId", "version", "entityRef", "facts"),
)

TOOL = Tool(
    name="get-changed-facts",
    title="Changed facts",
    description=(
        "Returns what changed since a time, in the order of time: the entity, the data source, and "
        "of each fact from what to what; null is no value, and unknownReasons says why. The first "
        "that a data source says of an entity is no change, nor is a value kept while a vendor "
        "fails. Changes of the source catalog tell of entities added, updated and removed. Every "
        "kind is included unless kind is given. dataSourceId is from get-data-source-discovery. "
        f"{CUT_NOTE}. {SIZE_NOTE}; a page has up to `limit` changes, often fewer or none, and "
        "`cursor` asks for the next."
    ),
    arguments=ChangedFactsArguments,
    output_schema=record(
        {
            "since": text("The time that was asked for, ISO 8601."),
            "changes": array(_CHANGE),
            "nextCursor": NEXT_CURSOR,
        },
        ("since", "changes"),
    ),
    run=run,
)
