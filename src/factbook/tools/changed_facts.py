"""get-changed-facts: changes of facts, with the values before and after."""

from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.clock import iso
from factbook.facts import history_queries as reading
from factbook.facts.history_queries import ChangePosition, FactChange
from factbook.facts.merge import reason_of
from factbook.tools import sources, times
from factbook.tools.entity_facts import EVERY_KIND
from factbook.tools.pages import CUT_NOTE, MOST_READS, EntryPage, cursor, place, shortened
from factbook.tools.tool import SIZE_NOTE, Context, Tool, argument, encode


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
                "Id of a data source, from get-data-source-discovery; all when left out.",
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


class _Asked(NamedTuple):
    since: int
    source_id: str | None
    kind: str | None


async def run(arguments: ChangedFactsArguments, context: Context) -> str:
    """The changes that the arguments select, the oldest first."""
    source_id = None
    if arguments.data_source_id is not UNSET:
        source_id = sources.one(arguments.data_source_id, context).id
    since = times.since(arguments.since, "since", context.now)
    after = None
    if arguments.cursor is not UNSET:
        # With `since` as a duration, what was the first place may be too early by now.
        after = max(ChangePosition(*place(arguments.cursor, 3)), ChangePosition(since, "", -1))
    page = EntryPage(arguments.limit)
    asked = _Asked(since, source_id, _kind(arguments))
    last = await _fill(page, asked, after, context)
    changes = ",".join(page.texts)
    return f'{{"since":{encode(iso(since))},"changes":[{changes}]{cursor(last)}}}'


def _kind(arguments: ChangedFactsArguments) -> str | None:
    if arguments.kind is UNSET or arguments.kind == EVERY_KIND:
        return None
    return arguments.kind.strip().lower()


async def _fill(
    page: EntryPage, asked: _Asked, last: ChangePosition | None, context: Context
) -> ChangePosition | None:
    """Put changes into the page; where it ended, None when nothing follows."""
    for _ in range(MOST_READS):
        found = await reading.changes_page(context.database, *asked, last, page.wanted)
        for change in found.changes:
            if change.source_id in context.sources and not page.add(_entry(change, context)):
                return last
            last = change.place
        if found.more is None or page.wanted == 0:
            return found.more
        last = found.more
    return last


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


TOOL = Tool(
    name="get-changed-facts",
    title="Changed facts",
    description=(
        "Returns which facts changed since a time, in the order of time: the entity, the data "
        "source, and of each fact from what to what. null is no value; unknownReasons says why "
        "there is none any more. The first that a data source says of an entity is no change, nor "
        "is a value kept while a vendor fails. Every kind is included unless kind is given. "
        "dataSourceId is from get-data-source-discovery; for all about one entity use "
        f"get-fact-history. {CUT_NOTE}. {SIZE_NOTE}; a page has up to `limit` changes, often fewer "
        "or none, and `cursor` asks for the next."
    ),
    arguments=ChangedFactsArguments,
    output_schema={
        "type": "object",
        "properties": {
            "since": {"type": "string", "description": "The time that was asked for, ISO 8601."},
            "changes": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "timestamp": {"type": "string", "description": "ISO 8601."},
                        "dataSourceId": {"type": "string"},
                        "version": {
                            "type": "string",
                            "description": "Of the data source that wrote the new values.",
                        },
                        "draft": {"type": "boolean", "description": "The data source was a draft."},
                        "entityRef": {
                            "type": "string",
                            "description": "kind:namespace/name, in lower case.",
                        },
                        "facts": {
                            "type": "object",
                            "description": "Fact name to what changed.",
                            "additionalProperties": {
                                "type": "object",
                                "description": "from and to have the values, null for none. Where "
                                "a long list is cut short, added and removed have the items that "
                                "came and went. cut has the number of items or characters of each "
                                "of these that is cut short.",
                            },
                        },
                        "unknownReasons": {
                            "type": "object",
                            "description": "Fact name to why it has no value any more.",
                        },
                    },
                    "required": ["timestamp", "dataSourceId", "version", "entityRef", "facts"],
                },
            },
            "nextCursor": {"type": "string", "description": "Pass as cursor for the next page."},
        },
        "required": ["since", "changes"],
    },
    run=run,
)
