"""get-changed-facts: changes of facts and entities, with the values before and after."""

import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import quote, unquote

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.catalog import kinds, ref
from factbook.catalog.store import revisions
from factbook.catalog.store.revisions import Past, PastChanges, PastPlace, list_changes_since
from factbook.clock import DAY, iso
from factbook.errors import ToolError
from factbook.facts import history
from factbook.facts.freshness import find_reason
from factbook.facts.history import ChangePosition, FactChange, FactChangePage
from factbook.integrations import SOURCES, catalog
from factbook.storage import Database
from factbook.tools import sources, tool
from factbook.tools.all_entities_facts import EVERY_KIND
from factbook.tools.tool import (
    CUT_NOTE,
    MOST_READS,
    NEXT_CURSOR,
    SIZE_NOTE,
    Context,
    EntryPage,
    Tool,
    decode_place,
    describe_argument,
    describe_list,
    describe_record,
    describe_text_member,
    encode_result,
    shorten_value,
)

CATALOG_ID: Final = "catalog"
_MOST_FIELDS = 20
# Facts that also depend on the documents of other entities.
_OF_OTHERS: Final = ("ownership.hasRelationships", "ownership.ownerExists")
_PLACE = re.compile(r"(\d{1,16})/(\d{1,18})/(\d{1,18})/([^/]*)", re.ASCII)
_INVALID_CURSOR: Final = (
    "cursor is not the nextCursor of an earlier page. Leave it out to start over."
)
# Separates the two positions in a cursor.
_APART = "~"
_OTHERS: Final = frozenset(name.partition(".")[2] for name in _OF_OTHERS)


class ChangeQuery(NamedTuple):
    """A query for changes: the start time, and the data source and kind, if restricted."""

    since: int
    source_id: str | None
    kind: str | None

    @property
    def is_of_catalog(self) -> bool:
        """True if the query includes changes of the catalog."""
        return self.source_id in (None, CATALOG_ID)


class ChangeCursor(NamedTuple):
    """Position of a page in the writes of data sources and in the revisions of sets."""

    facts: ChangePosition
    catalog: PastPlace


FoundChange = FactChange | Past


def start_changes(since: int) -> ChangeCursor:
    """The positions before all changes since a time."""
    # Valid ids that sort before every source id and entity id.
    return ChangeCursor(ChangePosition(since, "0", 0), PastPlace(since, 0, 0, ""))


def decode_places(text: str) -> ChangeCursor:
    """The positions encoded in a cursor; cursors of earlier releases have only the first."""
    facts, _, revisions = text.partition(_APART)
    first = ChangePosition(*decode_place(facts, 3))
    start = PastPlace(first.written_at, 0, 0, "")
    return ChangeCursor(first, _decode_past_place(revisions) if revisions else start)


def render_places(places: ChangeCursor | None, asked: ChangeQuery) -> str:
    """The result member that names the next page; empty if there is none."""
    if places is None:
        return ""
    text = "/".join(map(str, places.facts))
    if asked.is_of_catalog:
        past = places.catalog
        text += _APART + "/".join([*map(str, past[:3]), quote(past.ref, safe=":")])
    return f',"nextCursor":{encode_result(text)}'


async def read_changes(
    asked: ChangeQuery, places: ChangeCursor, wanted: int, context: Context
) -> tuple[history.FactChangePage, PastChanges]:
    """The next changes of data sources and of the catalog, as far as the query includes them."""
    database, past = context.database, PastChanges([], None)
    changed = await history.page_changes(database, *asked, places.facts, wanted)
    if asked.is_of_catalog:
        past = await list_changes_since(database, places.catalog, asked.kind, wanted)
        own = [
            await _drop_reported_facts(database, one)
            if catalog.is_catalog_source(one.source_id)
            else one
            for one in changed.changes
        ]
        changed = changed._replace(changes=own)
    return changed, past


def merge_changes(
    changed: history.FactChangePage, past: PastChanges
) -> list[tuple[int, FoundChange]]:
    """Merge both kinds of changes, each with its time, oldest first."""
    found: list[tuple[int, FoundChange]] = [(one.written_at, one) for one in changed.changes]
    found += [(one.place.created_at, one) for one in past.changes]
    return sorted(found, key=itemgetter(0))


def render_catalog_change(past: Past) -> dict[str, Any]:
    """Render a change for clients, with its effect on the catalog's own facts."""
    changed = past.changed
    before, after = _parse_document(changed.before), _parse_document(changed.after)
    found: dict[str, Any] = {
        "timestamp": iso(past.place.created_at),
        "dataSourceId": CATALOG_ID,
        "version": SOURCES[0].version,
        "entityRef": changed.ref,
        "change": changed.kind,
        "set": past.set,
        "revision": past.place.number,
        "by": past.by,
        "facts": {},
    }
    if before is not None and after is not None:
        fields = sorted(_list_changed_fields(before, after))
        was, now = (
            _derive_catalog_facts(changed.ref, before),
            _derive_catalog_facts(changed.ref, after),
        )
        found["fields"] = fields[:_MOST_FIELDS]
        found["facts"] = {
            name: {"from": was[name], "to": now[name]} for name in was if was[name] != now[name]
        }
    return found


async def _drop_reported_facts(database: Database, change: FactChange) -> FactChange:
    """Drop facts of the catalog's own that a revision already reported.

    Samples are taken daily, so the revision is from the day before.
    """
    time = change.written_at
    if not await revisions.has_recorded_change(database, change.ref, time - DAY, time):
        return change
    kept = change.facts if change.source_id == "entity-ownership" else {}
    return change._replace(facts={name: kept[name] for name in kept if name in _OTHERS})


def _decode_past_place(text: str) -> PastPlace:
    """The position encoded in a part of a cursor; raises ToolError."""
    match = _PLACE.fullmatch(text)
    if match is None:
        raise ToolError(_INVALID_CURSOR)
    created_at, set_id, number = (int(part) for part in match.groups()[:3])
    return PastPlace(created_at, set_id, number, unquote(match[4]))


def _parse_document(document: str | None) -> dict[str, Any] | None:
    return None if document is None else msgspec.json.decode(document, type=dict[str, Any])


def _derive_catalog_facts(entity_ref: str, entity: Mapping[str, Any]) -> dict[str, bool]:
    """The catalog's own facts that are determined by the document."""
    known = ref.parse_ref(entity_ref)
    spec = entity.get("spec") or {}
    edges, _ = kinds.derive_relations(known.kind, known.namespace, spec)
    bits = kinds.compute_document_bits(entity["metadata"], spec) | kinds.compute_relation_bits(
        edges
    )
    return {
        name: value
        for name, value in catalog.list_compliance_values(bits).items()
        if name not in _OF_OTHERS
    }


def _list_changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """The fields that differ, with those of metadata and spec listed individually."""
    for name in before.keys() | after.keys():
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            parts = old.keys() | new.keys()
            yield from (f"{name}.{part}" for part in parts if old.get(part) != new.get(part))
        else:
            yield name


class ChangedFactsArguments(Struct, forbid_unknown_fields=True, kw_only=True):
    """Since when, and of what."""

    since: Annotated[
        str,
        describe_argument(
            f"The earliest time: {tool.TIME_FORM}; or how long ago, such as 90m, 24h, 7d or 2w.",
            "7d",
            "2026-11-01",
            "2026-11-01T06:00:00Z",
        ),
    ]
    data_source_id: (
        Annotated[
            str,
            describe_argument(
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
            describe_argument(
                "Kind of the entities; every kind when left out.", "component", min_length=1
            ),
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, describe_argument("Most changes to return.", 50, ge=1, le=200)] = 50
    cursor: (
        Annotated[
            str,
            describe_argument("nextCursor of the page before.", "1795262400000/entity-metadata/7"),
        ]
        | UnsetType
    ) = UNSET


async def run_changed_facts(arguments: ChangedFactsArguments, context: Context) -> str:
    """The changes selected by the arguments, oldest first."""
    source_id = None
    if arguments.data_source_id is not UNSET:
        source_id = arguments.data_source_id
        if source_id != CATALOG_ID:
            source_id = sources.find_source(source_id, context).id
    since = tool.parse_since(arguments.since, "since", context.now)
    kind = None
    if arguments.kind is not UNSET and arguments.kind != EVERY_KIND:
        kind = arguments.kind.strip().lower()
    asked = ChangeQuery(since, source_id, kind)
    places = start_changes(since)
    if arguments.cursor is not UNSET:
        # If `since` is a duration, the cursor may be earlier than it by now.
        given = decode_places(arguments.cursor)
        places = ChangeCursor(max(places.facts, given.facts), max(places.catalog, given.catalog))
    page = EntryPage(arguments.limit)
    last = await _fill_changes(page, asked, places, context)
    changes = ",".join(page.texts)
    return (
        f'{{"since":{encode_result(iso(since))},"changes":[{changes}]{render_places(last, asked)}}}'
    )


async def _fill_changes(
    page: EntryPage, asked: ChangeQuery, places: ChangeCursor, context: Context
) -> ChangeCursor | None:
    """Add changes to the page; returns the position of its end, None if nothing follows."""
    for _ in range(MOST_READS):
        changed, past = await read_changes(asked, places, page.wanted, context)
        # Stop at the end of the shorter read, to keep changes in order of time.
        ends = [read.more[0] for read in (changed, past) if read.more is not None]
        for time, change in merge_changes(changed, past):
            if ends and time > min(ends):
                places = _advance_places(places, changed, past, min(ends))
                break
            if isinstance(change, Past):
                fits = page.add(render_catalog_change(change))
                following = places._replace(catalog=change.place)
            else:
                is_shown = change.source_id in context.sources and bool(change.facts)
                fits = not is_shown or page.add(_render_fact_change(change, context))
                following = places._replace(facts=change.place)
            if not fits:
                return places
            places = following
        else:
            if changed.more is None and past.more is None:
                return None
            places = ChangeCursor(changed.more or places.facts, past.more or places.catalog)
        if page.wanted == 0:
            return places
    return places


def _advance_places(
    places: ChangeCursor, changed: FactChangePage, past: PastChanges, end: int
) -> ChangeCursor:
    """Advance each position whose changes up to `end` have all been read."""
    if changed.more is not None and changed.more.written_at == end:
        places = places._replace(facts=changed.more)
    if past.more is not None and past.more.created_at == end:
        places = places._replace(catalog=past.more)
    return places


def _render_fact_change(change: FactChange, context: Context) -> dict[str, Any]:
    draft = sources.is_draft_version(context.sources[change.source_id], change.version)
    reasons = {
        name: find_reason(name, change.reasons)
        for name, (_, after) in change.facts.items()
        if after is None
    }
    entry = {
        "timestamp": iso(change.written_at),
        "dataSourceId": change.source_id,
        "version": change.version,
        "draft": draft,
        "entityRef": change.ref,
        "facts": {name: _render_difference(*values) for name, values in change.facts.items()},
        "unknownReasons": {name: reason for name, reason in reasons.items() if reason},
    }
    return {key: value for key, value in entry.items() if value}


def _render_difference(before: object, after: object) -> dict[str, Any]:
    """The values before and after; for lists too long to show, also added and removed items."""
    values = {"from": before, "to": after}
    if any(shorten_value(value)[1] is not None for value in values.values()):
        values |= _list_difference(before, after)
    shown = {name: shorten_value(value) for name, value in values.items()}
    cut = {name: count for name, (_, count) in shown.items() if count is not None}
    return {name: value for name, (value, _) in shown.items()} | ({"cut": cut} if cut else {})


def _list_difference(before: object, after: object) -> dict[str, object]:
    if not isinstance(before, list) or not isinstance(after, list):
        return {}
    # Hashable keys; a text is its own key, as encoding many texts would be slow.
    was, now = (
        [item if isinstance(item, str) else (encode_result(item),) for item in items]
        for items in (before, after)
    )
    old, new = set(was), set(now)
    return {
        "added": [item for item, key in zip(after, now, strict=True) if key not in old],
        "removed": [item for item, key in zip(before, was, strict=True) if key not in new],
    }


_CHANGE = describe_record(
    {
        "timestamp": describe_text_member("ISO 8601."),
        "dataSourceId": {"type": "string"},
        "version": describe_text_member("Of the data source that wrote the new values."),
        "draft": {"type": "boolean", "description": "The data source was a draft."},
        "entityRef": describe_text_member("kind:namespace/name, in lower case."),
        "change": {
            "type": "string",
            "enum": ["added", "updated", "removed"],
            "description": "What happened to the entity, in changes of `catalog`.",
        },
        "set": describe_text_member("The set that was pushed."),
        "revision": {"type": "integer", "description": "Its revision."},
        "by": describe_text_member("Who pushed it."),
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
            "description": "Maps each fact to the reason it no longer has a value.",
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
    output_schema=describe_record(
        {
            "since": describe_text_member("The time that was asked for, ISO 8601."),
            "changes": describe_list(_CHANGE),
            "nextCursor": NEXT_CURSOR,
        },
        ("since", "changes"),
    ),
    run=run_changed_facts,
)
