"""History of facts: changes found by writes, one row each, and time series."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog.piecewise import weighed
from factbook.catalog.store import stored_entities
from factbook.clock import DAY
from factbook.events.store import append_events, make_facts_row
from factbook.facts.datasource import DataSource, duration_milliseconds
from factbook.facts.freshness import Latest, expiry_time, find_reason
from factbook.storage import Database, Row, Transaction
from factbook.storage.database import Parameters, Touched

# Bytes of JSON: of a value in an event, of all values of an entity, and of a row of events.
LARGEST_VALUE: Final = 1024
_MOST_OF_ENTITY: Final = 16 * 1024
_MOST_OF_ROW: Final = 64 * 1024
# Topics with which writes announce changes, for data derived from facts.
_VALUES_TOPIC: Final = "facts"
_TIMES_TOPIC: Final = "times of facts"
# Values with at least this many characters of JSON are long.
_LONG_VALUE: Final = 512
# Long values are stored again after this part of the retention time: only the oldest rows lose
# theirs with an older row.
_LARGEST_PART: Final = 10
_decode_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
# Rows of history scanned for one page of changes.
ROWS_SCANNED: Final = 2_000
# Earlier rows read to find the value before a change. Rows of failed runs lack kept values; this
# covers three failed runs.
_ROWS_BEFORE = 5
# Stored JSON read by one query.
_MOST_BYTES: Final = 4_000_000
_LAST_TIME = 2**63 - 1
Point = tuple[int, Any]  # when it was written, and the value; None where it was unknown


class Before(NamedTuple):
    """The stored facts of an entity, JSON except for the times; `written_at` 0: never collected."""

    facts: str
    reasons: str
    version: str
    written_at: int
    kept: str


def lock_latest(transaction: Transaction, source_id: str) -> None:
    """Lock the latest facts of a source against writes by others.

    The rows themselves are not locked: in a cluster they are on several machines.
    """
    transaction.lock(f"facts of {source_id}")


def select_stored(
    transaction: Transaction, source_id: str, entity_ids: list[int]
) -> dict[int, Before]:
    """The stored facts of one source about the entities.

    Until the transaction ends, other writers of the source wait.
    """
    lock_latest(transaction, source_id)
    rows = transaction.all(_STORED_FACTS, (source_id, entity_ids)) if entity_ids else []
    return {entity_id: Before(*row) for entity_id, *row in rows}


def publish_changes(
    transaction: Transaction,
    source_id: str,
    stored: Mapping[int, Before],
    written: Mapping[int, str],
    now: int,
) -> None:
    """Publish a change for every entity whose `written` facts (JSON) differ from those stored."""
    changed = {
        id_: told
        for id_, facts in written.items()
        if (was := stored.get(id_)) is not None
        and was.written_at
        and was.facts != facts
        and (told := compare_facts(was.facts, facts))
    }
    if not changed:
        return
    refs = stored_entities.read_refs_of_ids_within(transaction, changed)
    found = [_encode_json((ref, changed[id_])) for id_, ref in sorted(refs.items())]
    rows = (
        make_facts_row(source_id, [msgspec.Raw(text) for text in some])
        for some in weighed(found, len, most=len(found), heaviest=_MOST_OF_ROW)
    )
    append_events(transaction, rows, now)


def compare_facts(was: str, since: str) -> dict[str, dict[str, Any]]:
    """The change of each fact that differs: its value `from` the old text `to` the new one.

    None means no value. Values that are too large are `omitted`.
    """
    old, new = _decode_members(was), _decode_members(since)
    changes: dict[str, dict[str, Any]] = {
        name: {"from": old.get(name), "to": value}
        for name, value in new.items()
        # The types, because in Python 1 and True are the same.
        if name not in old or old[name] != value or type(old[name]) is not type(value)
    }
    changes |= {name: {"from": old[name], "to": None} for name in old if name not in new}
    return changes if len(was) + len(since) <= LARGEST_VALUE else _bound_changes(changes)


def touch_values(transaction: Transaction, source_id: str, entity_ids: Iterable[int]) -> None:
    """Announce that a source's latest facts or reasons about these entities may have changed."""
    transaction.touch((_VALUES_TOPIC, source_id), entity_ids)


def touch_times(transaction: Transaction, source_id: str, entity_ids: Iterable[int]) -> None:
    """Announce that a source's facts about these entities were confirmed: only times changed."""
    transaction.touch((_TIMES_TOPIC, source_id), entity_ids)


def split_topics(topics: Touched) -> Iterator[tuple[str, bool, set[int]]]:
    """(source id, true if more than times may have changed, entity ids) of each topic."""
    for topic, ids in topics.items():
        if topic[0] in (_VALUES_TOPIC, _TIMES_TOPIC):
            yield topic[1], topic[0] == _VALUES_TOPIC, ids


def _bound_changes(changes: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    room = _MOST_OF_ENTITY
    for name, values in changes.items():
        sizes = [len(_encode_json(value)) for value in values.values()]
        room -= sum(sizes)
        if room < 0 or max(sizes) > LARGEST_VALUE:
            changes[name] = {"omitted": True}
    return changes


class FactObservation(NamedTuple):
    """Facts and reasons from one collection of an entity, as JSON."""

    entity_id: int
    facts: str
    reasons: str


class _HoldingRow(NamedTuple):
    """The row that stores the long values of an entity's newest row."""

    written_at: int
    facts: str


def found_facts(entity_id: int, latest: Latest) -> FactObservation:
    """The latest facts from the last collection itself, without kept ones."""
    facts = {name: value for name, value in latest.facts.items() if name not in latest.kept}
    return FactObservation(entity_id, _encode_text(facts), _encode_text(latest.reasons))


def append_history(
    transaction: Transaction,
    source: DataSource,
    found: Iterable[FactObservation],
    before: Mapping[int, Before],
    now: int,
) -> None:
    """Append observations that differ from the entity's last row; `before` are the stored facts."""
    new = [
        one for one in found if not _is_confirmation(source, one, before.get(one.entity_id), now)
    ]
    ends = [(one.entity_id, before[one.entity_id].written_at) for one in new if one[0] in before]
    close_history(transaction, source.id, [end for end in ends if 0 < end[1] < now])
    rows = [(source.id, one.entity_id, now, *one[1:], source.version) for one in new]
    transaction.many(_APPEND_ROWS, _shorten_rows(transaction, source, rows, before, now))


def close_history(
    transaction: Transaction, source_id: str, ends: Iterable[tuple[int, int]]
) -> None:
    """Record the last confirmation, by entity, in the row of history that it confirms."""
    rows = [(at, source_id, entity_id, source_id, entity_id, at, at) for entity_id, at in ends]
    transaction.many(_CLOSE_ROW, rows)


def fill_long_values(facts: str | msgspec.Raw, holding: str) -> msgspec.Raw:
    """The facts with omitted long values filled in from the row that stores them."""
    own, held = _decode_raw_members(facts), _decode_raw_members(holding)
    return msgspec.Raw(msgspec.json.encode({name: own.get(name, held[name]) for name in held}))


def _shorten_rows(
    transaction: Transaction,
    source: DataSource,
    rows: Sequence[tuple[Any, ...]],
    before: Mapping[int, Before],
    now: int,
) -> list[tuple[Any, ...]]:
    """The rows without unchanged long values, and with the time of the row that stores them."""
    facts = {row[1]: row[3] for row in rows if row[1] in before}
    same = [
        id_
        for id_ in facts
        if _without_long_values(facts[id_], _facts_of_run(before[id_])) is not None
    ]
    short = dict[int, tuple[str, int]]()
    for id_, holder in _select_holders(transaction, source, same, now).items():
        # The newest row by time may not be that of the latest facts: a clock that was set back
        # leaves rows with future times, and later observations confirm these.
        if (found := _without_long_values(facts[id_], holder.facts)) is not None:
            short[id_] = found, holder.written_at
    return [
        (*row[:3], short[row[1]][0], *row[4:], short[row[1]][1])
        if row[1] in short
        else (*row, None)
        for row in rows
    ]


def _is_confirmation(
    source: DataSource, found: FactObservation, before: Before | None, now: int
) -> bool:
    """Return true if the newest row has the same facts and no long gap followed it."""
    # Each definition of a draft may have other facts under the same version.
    if (
        before is None
        or source.draft
        or not 0 < before.written_at < now <= _lost_sight_at(source, before)
    ):
        return False
    return (_facts_of_run(before), before.reasons, before.version) == (*found[1:], source.version)


def _lost_sight_at(source: DataSource, before: Before) -> int:
    """The time from which unchanged facts are no longer certain."""
    lost_at = expiry_time(source, before.written_at)
    lifetime = source.lifecycle.time_to_live if source.lifecycle else None
    # The row may be trimmed before then.
    return (
        lost_at
        if lifetime is None
        else min(lost_at, before.written_at + duration_milliseconds(lifetime))
    )


def _facts_of_run(before: Before) -> str:
    if before.kept == "{}":
        return before.facts
    kept = msgspec.json.decode(before.kept, type=dict[str, int])
    facts = msgspec.json.decode(before.facts, type=dict[str, msgspec.Raw])
    # A failed collection marks these values as stale. They still belong to the row.
    own = {name: facts[name] for name in facts if kept.get(name) in (None, before.written_at)}
    return _encode_text(own)


def _without_long_values(facts: str, before: str) -> str | None:
    """The facts without their long values; None without long values, or if these changed."""
    if len(facts) < _LONG_VALUE:
        return None
    new, old = _decode_raw_members(facts), _decode_raw_members(before)
    short = {name: value for name, value in new.items() if len(bytes(value)) < _LONG_VALUE}
    same = all(new[name] == old.get(name) for name in new.keys() - short.keys())
    if new.keys() != old.keys() or len(short) == len(new) or not same:
        return None
    return msgspec.json.encode(short).decode()


def _select_holders(
    transaction: Transaction, source: DataSource, entity_ids: Iterable[int], now: int
) -> dict[int, _HoldingRow]:
    """The rows that have the long values of the entities' newest rows, by entity.

    Rows too old for references are left out.
    """
    since = _sight_limit(source, now)
    if since is None or not (ids := list(entity_ids)):
        return {}
    rows = transaction.all(_HOLDERS, (source.id, ids, since, now))
    return {entity_id: _HoldingRow(*holder) for entity_id, *holder in rows}


def _sight_limit(source: DataSource, now: int) -> int | None:
    lifecycle = source.lifecycle
    # Sources that keep a number of rows may lose any; drafts may change with each definition.
    if source.draft or (lifecycle and lifecycle.max_items is not None):
        return None
    if lifecycle is None or lifecycle.time_to_live is None:
        return now - DAY
    return now - min(DAY, duration_milliseconds(lifecycle.time_to_live) // _LARGEST_PART)


def _encode_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


class ChangePosition(NamedTuple):
    """Position at the end of a page of changes."""

    written_at: int
    source_id: str
    entity_id: int


class FactChange(NamedTuple):
    """Facts changed by one row of history: by fact, the values before and after; None is no value.

    `reasons` are the row's reasons for missing values, by fact name or by a place above it.
    """

    place: ChangePosition
    ref: str
    version: str
    facts: dict[str, tuple[Any, Any]]
    reasons: dict[str, str]

    @property
    def source_id(self) -> str:
        """The source that wrote it."""
        return self.place.source_id

    @property
    def written_at(self) -> int:
        """The time of the write."""
        return self.place.written_at


class FactChangePage(NamedTuple):
    """A page of changes, possibly empty; `more` is None on the last page."""

    changes: list[FactChange]
    more: ChangePosition | None


async def page_changes(
    database: Database,
    since: int,
    source_id: str | None,
    kind: str | None,
    after: ChangePosition | None,
    limit: int,
) -> FactChangePage:
    """Up to `limit` rows at or after `since` that changed a fact, oldest first.

    A row is compared with the preceding row of the same source and entity; the first row is not a
    change. A page scans at most `ROWS_SCANNED` rows, so it may hold fewer changes.
    """
    rows = await _scan_rows(database, source_id, kind, after or ChangePosition(since, "", -1))
    changed = [row for row in rows if row[3] is not None]
    found = [await _select_change(database, *row) for row in changed[:limit]]
    if len(changed) > limit:
        more: ChangePosition | None = ChangePosition(*changed[limit - 1][:3])
    else:
        more = ChangePosition(*rows[-1][:3]) if len(rows) == ROWS_SCANNED else None
    return FactChangePage([change for change in found if change.facts], more)


async def _scan_rows(
    database: Database, source_id: str | None, kind: str | None, place: ChangePosition
) -> list[Row]:
    """The rows that a page scans: key, reference if the row has news, and version."""
    scan = _SCAN_ALL if source_id is None else _SCAN_ONE
    keys = await database.search(scan.start, (*_position_key(source_id, place), ROWS_SCANNED))
    if not keys:
        return []
    of_kind, kinds = ("", ()) if kind is None else (" AND e.kind = ?", (kind,))
    sql = _CHANGED_ROWS.replace("{range}", scan.range).replace("{kind}", of_kind)
    last = ChangePosition(*keys[-1])
    return await database.search(
        sql, (*_position_key(source_id, place), *_position_key(source_id, last), *kinds)
    )


def _position_key(source_id: str | None, place: ChangePosition) -> tuple[Any, ...]:
    return place if source_id is None else (source_id, place.written_at, place.entity_id)


async def _select_change(
    database: Database, written_at: int, source_id: str, entity_id: int, ref: str, version: str
) -> FactChange:
    keys = (source_id, entity_id, written_at, _ROWS_BEFORE + 1)
    window = await database.all(_ROW_WINDOW, keys)
    rows: list[RowState] = []
    # `holding` is the row that stores long values, if another one does.
    for facts, reasons, _, holding in window:
        whole = facts if holding is None else fill_long_values(facts, holding)
        rows.append((msgspec.json.decode(whole), msgspec.json.decode(reasons)))
    changed = compare_rows(rows)
    if any(held_at is not None and holding is None for *_, held_at, holding in window):
        # The earlier long values were deleted with an old row: a change can't be determined.
        changed = {name: changed[name] for name in changed if changed[name][0] is not None}
    place = ChangePosition(written_at, source_id, entity_id)
    return FactChange(place, ref, version, changed, dict(rows[0][1]))


RowState = tuple[Mapping[str, Any], Mapping[str, str]]  # facts, and why others have no value


def compare_rows(rows: Sequence[RowState]) -> dict[str, tuple[Any, Any]]:
    """The facts changed by the first of the rows, newest first: (before, after) by fact.

    A row that has neither a value nor a reason for a fact leaves it unchanged.
    """
    before: dict[str, Any] = {}
    for row in reversed(rows[1:]):
        before = _state_after(before, row)
    since = _state_after(before, rows[0])
    encode = msgspec.json.encode
    return {
        name: (before.get(name), since.get(name))
        for name in {**before, **since}
        if name not in before or name not in since or encode(before[name]) != encode(since[name])
    }


def _state_after(state: Mapping[str, Any], row: RowState) -> dict[str, Any]:
    facts, reasons = row
    return {name: state[name] for name in state if find_reason(name, reasons) is None} | dict(facts)


class _Scan(NamedTuple):
    """SQL of a scan: its `start`, which finds keys up to a limit, and the `range` between two."""

    start: str
    range: str


class HistoryPosition(NamedTuple):
    """Position at the end of a page of an entity's history."""

    written_at: int
    source_id: str


class HistoryEntry(NamedTuple):
    """A row of history, and the version of the source that wrote it.

    `facts` and `reasons` are the stored JSON, passed through without decoding. `confirmed_at` is
    the last later time at which a collection found the same; None if none did.
    """

    source_id: str
    written_at: int
    version: str
    facts: msgspec.Raw
    reasons: msgspec.Raw
    confirmed_at: int | None = None
    # The facts of the row that stores the long values.
    held_at: int | None = None


class Excerpt(NamedTuple):
    """Rows of history, oldest first, at least `step` milliseconds apart.

    A row confirmed after the beginning of the excerpt starts there. `start` is the time of the
    first row of all history, None without history; `is_whole` is true if no row is left out.
    """

    rows: list[HistoryEntry]
    start: int | None
    step: int
    is_whole: bool


async def page_history(
    database: Database,
    source_ids: Sequence[str] | None,
    entity_id: int,
    start: int | None,
    end: int | None,
    after: HistoryPosition | None,
    limit: int,
) -> list[HistoryEntry]:
    """Up to `limit` rows about an entity from `start` to `end`, both included, newest first.

    Rows written before `start` and confirmed since are included. `source_ids` None means every
    source. `after` is the last row of the previous page.
    """
    last = HistoryPosition(_LAST_TIME if end is None else end + 1, "")
    last = last if after is None else min(last, after)
    among, sources = _sources_condition(source_ids)
    rows = await _read_long(database)(
        _HISTORY_ROWS.replace("{}", among), (entity_id, *sources, start or 0, *last, limit)
    )
    found = await _complete_rows(database, entity_id, [_history_entry(row) for row in rows])
    if start is not None and len(found) < limit:
        earlier = await _select_held(database, among, (entity_id, *sources), entity_id, start, last)
        found += earlier[: limit - len(found)]
    return found


def _read_long(database: Database) -> Callable[[str, Parameters], Awaitable[list[Row]]]:
    """The function that reads many rows of one entity, from a replica if available."""
    return database.all if database.replica() is None else database.search


async def _select_held(
    database: Database,
    among: str,
    keys: tuple[Any, ...],
    entity_id: int,
    start: int,
    last: HistoryPosition,
) -> list[HistoryEntry]:
    """Rows written before `start` and `last` and confirmed at or after `start`, newest first."""
    times = await database.all(_NEWEST_BEFORE.replace("{}", among), (*keys, start))
    rows = [
        row
        for source_id, written_at in times
        if (written_at, source_id) < last
        and (row := await database.one(_HISTORY_ROW, (source_id, entity_id, written_at)))
    ]
    found = await _complete_rows(database, entity_id, [_history_entry(row) for row in rows])
    held = [row for row in found if row.confirmed_at is not None and row.confirmed_at >= start]
    return sorted(held, key=lambda row: (row.written_at, row.source_id), reverse=True)


async def _complete_rows(
    database: Database, entity_id: int, rows: list[HistoryEntry]
) -> list[HistoryEntry]:
    """The rows with their last confirmations, and with long values stored in other rows."""
    rows = await _confirm_rows(database, entity_id, rows)
    held = {(row.source_id, row.held_at) for row in rows if row.held_at is not None}
    if not held:
        return rows
    source_ids, times = (sorted(set(values)) for values in zip(*held, strict=True))
    found = await database.all(_HOLDING_ROWS, (entity_id, source_ids, times))
    texts = {(source_id, at): facts for source_id, at, facts in found}
    return [
        row._replace(facts=fill_long_values(row.facts, texts[row.source_id, row.held_at]))
        if (row.source_id, row.held_at) in texts
        else row
        for row in rows
    ]


async def _confirm_rows(
    database: Database, entity_id: int, rows: list[HistoryEntry]
) -> list[HistoryEntry]:
    """The rows, with the last confirmation added to the newest of each source."""
    source_ids = sorted({row.source_id for row in rows if row.confirmed_at is None})
    if not source_ids:
        return rows
    found = await database.all(_NEWEST_TIMES, (entity_id, source_ids))
    times = {(source_id, newest): at for source_id, newest, at in found if at > (newest or at)}
    return [
        row._replace(confirmed_at=times.get(row[:2])) if row.confirmed_at is None else row
        for row in rows
    ]


async def recent_history(
    database: Database,
    source_id: str,
    entity_id: int,
    facts: Mapping[str, object],
    most: int,
    size: int = _MOST_BYTES,
) -> list[HistoryEntry]:
    """The newest rows, in ascending order of time. The latest `facts` serve to estimate length."""
    limit = count_fitting_rows(facts, most, size)
    rows = await page_history(database, [source_id], entity_id, None, None, None, limit)
    return rows[::-1]


async def spread_history(
    database: Database,
    source_id: str,
    entity_id: int,
    start: int | None,
    end: int,
    facts: Mapping[str, object],
    most: int,
) -> Excerpt:
    """Rows spread over the time from `start`, or the first row, to `end`, both included.

    All rows if few, else about `most`: the first row of each of `most` equal intervals.
    """
    keys = (source_id, entity_id)
    row = await database.one(_FIRST_TIME, keys)
    first: int | None = row[0] if row else None
    if first is None:
        return Excerpt([], None, 1, is_whole=True)
    begin = first if start is None else max(first, start)
    step = max(1, (end - begin) // count_fitting_rows(facts, most))
    found = await _read_long(database)(_SPREAD_ROWS, (*keys, begin, end, *keys, step, end, *keys))
    rows = [_history_entry((source_id, *row)) for row in found]
    counted = await database.one(_COUNT_ROWS, (*keys, begin, end, len(rows) + 1))
    rows = await _complete_rows(database, entity_id, rows)
    if begin > first:
        last = HistoryPosition(_LAST_TIME, "")
        among, sources = _sources_condition([source_id])
        held = await _select_held(database, among, (entity_id, *sources), entity_id, begin, last)
        rows[:0] = [row._replace(written_at=begin) for row in held]
    return Excerpt(rows, first, step, is_whole=counted == (len(found),))


def count_fitting_rows(facts: Mapping[str, object], most: int, size: int = _MOST_BYTES) -> int:
    """The number of rows as long as these facts that fit `size` bytes, up to `most`."""
    return max(2, min(most, size // max(1, len(msgspec.json.encode(facts)))))


def fact_points(rows: Iterable[HistoryEntry], names: Sequence[str]) -> dict[str, list[Point]]:
    """The values of facts in rows of history; a fact not mentioned in a row is unchanged.

    A confirmed row gives two points. Other facts in the rows are skipped without decoding.
    """
    found: dict[str, list[Point]] = {name: [] for name in names}
    for row in rows:
        times = [at for at in (row.written_at, row.confirmed_at) if at is not None]
        facts = _decode_raw_members(row.facts)
        reasons: dict[str, str] | None = None
        for name in names:
            if name in facts:
                value = msgspec.json.decode(facts[name])
                found[name] += [(at, value) for at in times]
                continue
            if reasons is None:
                reasons = msgspec.json.decode(row.reasons)
            if find_reason(name, reasons) is not None:
                found[name] += [(at, None) for at in times]
    return found


def _history_entry(row: Sequence[Any]) -> HistoryEntry:
    source_id, written_at, version, facts, reasons, *times = row
    texts = msgspec.Raw(facts), msgspec.Raw(reasons)
    return HistoryEntry(source_id, written_at, version, *texts, *times)


def _sources_condition(source_ids: Sequence[str] | None) -> tuple[str, tuple[Any, ...]]:
    if source_ids is None:
        return "", ()
    if len(source_ids) == 1:
        return " AND source_id = ?", (source_ids[0],)
    return " AND source_id IN LIST(?)", (list(source_ids),)


_decode_members = msgspec.json.Decoder(dict[str, Any]).decode
_encode_json = msgspec.json.encode

_STORED_FACTS = """
SELECT entity_id, facts, reasons, version, written_at, kept FROM facts_latest
WHERE source_id = ? AND entity_id IN LIST(?)
"""


# A run repeated within the same millisecond leaves the row as it is.
_APPEND_ROWS = """
INSERT INTO facts_history (source_id, entity_id, written_at, facts, reasons, version, held_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""

_CLOSE_ROW = """
UPDATE facts_history SET confirmed_at = ?
WHERE source_id = ? AND entity_id = ? AND written_at = (
    SELECT MAX(written_at) FROM facts_history
    WHERE source_id = ? AND entity_id = ? AND written_at <= ?
) AND written_at < ?
"""

# The newest row up to the latest facts: a clock that was set back may have left later rows.
_HOLDERS: Final = """
SELECT b.entity_id, b.written_at, b.facts FROM (
    SELECT l.source_id, l.entity_id, (
        SELECT COALESCE(h.held_at, h.written_at) AS time FROM facts_history h
        WHERE h.source_id = l.source_id AND h.entity_id = l.entity_id
            AND h.written_at <= l.written_at
        ORDER BY h.written_at DESC LIMIT 1
    ) AS held_at FROM facts_latest l WHERE l.source_id = ? AND l.entity_id IN LIST(?)
) s JOIN facts_history b
    ON b.source_id = s.source_id AND b.entity_id = s.entity_id AND b.written_at = s.held_at
WHERE b.written_at > ? AND b.written_at < ?
"""


_SCAN_ALL = _Scan(
    """
    SELECT written_at, source_id, entity_id FROM facts_history
    WHERE (written_at, source_id, entity_id) > (?, ?, ?)
    ORDER BY written_at, source_id, entity_id LIMIT ?
    """,
    """(h.written_at, h.source_id, h.entity_id) > (?, ?, ?)
        AND (h.written_at, h.source_id, h.entity_id) <= (?, ?, ?)""",
)

_SCAN_ONE = _Scan(
    """
    SELECT written_at, source_id, entity_id FROM facts_history
    WHERE source_id = ? AND (written_at, entity_id) > (?, ?)
    ORDER BY written_at, entity_id LIMIT ?
    """,
    """h.source_id = ? AND (h.written_at, h.entity_id) > (?, ?)
        AND h.source_id = ? AND (h.written_at, h.entity_id) <= (?, ?)""",
)

# Bounded by a key, not by LIMIT, to let a cluster that is sharded by entity compare rows on their
# shard.
_CHANGED_ROWS = """
SELECT s.written_at, s.source_id, s.entity_id, CASE WHEN e.ref IS NULL THEN NULL
    WHEN s.said <> COALESCE(s.said_before, s.said) THEN e.ref END, s.version
FROM (
    SELECT h.written_at, h.source_id, h.entity_id, h.version, h.facts || h.reasons AS said, (
        SELECT b.facts || b.reasons FROM facts_history b
        WHERE b.source_id = h.source_id AND b.entity_id = h.entity_id
            AND b.written_at < h.written_at
        ORDER BY b.written_at DESC LIMIT 1
    ) AS said_before FROM facts_history h WHERE {range}
) s LEFT JOIN entities e ON e.id = s.entity_id{kind}
ORDER BY s.written_at, s.source_id, s.entity_id
"""

_ROW_WINDOW = """
SELECT h.facts, h.reasons, h.held_at, (
    SELECT b.facts FROM facts_history b
    WHERE b.source_id = h.source_id AND b.entity_id = h.entity_id AND b.written_at = h.held_at
) FROM facts_history h
WHERE h.source_id = ? AND h.entity_id = ? AND h.written_at <= ? ORDER BY h.written_at DESC LIMIT ?
"""

_HISTORY_ROWS = """
SELECT source_id, written_at, version, facts, reasons, confirmed_at, held_at FROM facts_history
WHERE entity_id = ?{} AND written_at >= ? AND (written_at, source_id) < (?, ?)
ORDER BY written_at DESC, source_id DESC LIMIT ?
"""

_HISTORY_ROW = """
SELECT source_id, written_at, version, facts, reasons, confirmed_at, held_at FROM facts_history
WHERE source_id = ? AND entity_id = ? AND written_at = ?
"""

_HOLDING_ROWS = """
SELECT source_id, written_at, facts FROM facts_history
WHERE entity_id = ? AND source_id IN LIST(?) AND written_at IN LIST(?)
"""

_NEWEST_BEFORE = """
SELECT source_id, MAX(written_at) FROM facts_history
WHERE entity_id = ?{} AND written_at < ? GROUP BY source_id
"""

# The newest row of each source, and its last confirmation.
_NEWEST_TIMES = """
SELECT l.source_id, (
    SELECT MAX(h.written_at) FROM facts_history h
    WHERE h.source_id = l.source_id AND h.entity_id = l.entity_id
), l.written_at FROM facts_latest l WHERE l.entity_id = ? AND l.source_id IN LIST(?)
"""

_FIRST_TIME = "SELECT MIN(written_at) FROM facts_history WHERE source_id = ? AND entity_id = ?"

# Jumps from row to row in the index, skipping rows in between.
_SPREAD_ROWS = """
WITH RECURSIVE steps (at) AS (
    SELECT MIN(written_at) FROM facts_history
    WHERE source_id = ? AND entity_id = ? AND written_at >= ? AND written_at <= ?
    UNION ALL
    SELECT (
        SELECT MIN(h.written_at) FROM facts_history h
        WHERE h.source_id = ? AND h.entity_id = ? AND h.written_at >= s.at + ?
            AND h.written_at <= ?
    ) FROM steps s WHERE s.at IS NOT NULL
)
SELECT h.written_at, h.version, h.facts, h.reasons, h.confirmed_at, h.held_at FROM steps s
JOIN facts_history h ON h.source_id = ? AND h.entity_id = ? AND h.written_at = s.at
WHERE s.at IS NOT NULL ORDER BY s.at
"""

_COUNT_ROWS = """
SELECT COUNT(*) FROM (
    SELECT 1 FROM facts_history
    WHERE source_id = ? AND entity_id = ? AND written_at >= ? AND written_at <= ? LIMIT ?
) found
"""
