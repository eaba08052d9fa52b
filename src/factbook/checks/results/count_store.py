"""The store of counts: entities by slot, owner and state, changed with the states themselves.

The counts of each check are kept day by day for trends, where they differ from the day before.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from factbook.checks import state
from factbook.checks.definitions import publications
from factbook.checks.definitions.definition_versions import check_store
from factbook.clock import DAY, Throttle
from factbook.storage import Database, Row, Transaction

# The place of a state in the counts.
_PLACES_OF_STATES: Final = {state.PASS: 0, state.FAIL: 1, state.UNKNOWN: 2, state.INAPPLICABLE: 4}
_EXEMPT_PLACE: Final = 3
NO_PLACE: Final = -1
PLACES: Final = tuple(
    _EXEMPT_PLACE if value & state.EXEMPT else _PLACES_OF_STATES.get(value, NO_PLACE)
    for value in range(256)
)
_DAYS_DELETED_AT_ONCE: Final = 1_000  # rows at once, so that no other write waits long


class StateCounts(NamedTuple):
    """Numbers of entities by the state of a check; those that it is not about are not counted."""

    passing: int = 0
    failing: int = 0
    undecided: int = 0
    exempt: int = 0
    inapplicable: int = 0

    def plus(self, other: "StateCounts") -> "StateCounts":
        """The sums."""
        return StateCounts(*(one + more for one, more in zip(self, other, strict=True)))


# Slot, owner and the numbers of StateCounts.
CountRow = tuple[int, str, int, int, int, int, int]


_COLUMNS: Final = ("slot", "owner", *StateCounts._fields)


class CountDeltas:
    """Changes of counts, gathered over a transaction and written at its end."""

    def __init__(self) -> None:
        self._deltas: dict[tuple[int, str], list[int]] = {}

    def change(self, owner: str, slot: int, before: int, after: int) -> None:
        """Count an entity of the owner under another state of the slot."""
        self._add(owner, slot, PLACES[before], -1)
        self._add(owner, slot, PLACES[after], 1)

    def leave(self, owner: str, states: bytearray, slots: Iterable[int]) -> None:
        """Count an entity with these states no more."""
        for slot in slots:
            self._add(owner, slot, PLACES[states[slot]], -1)

    def come(self, owner: str, states: bytearray, slots: Iterable[int]) -> None:
        """Count an entity with these states."""
        for slot in slots:
            self._add(owner, slot, PLACES[states[slot]], 1)

    def count(self, owner: str, slot: int, state: int, number: int) -> None:
        """Count so many entities more under a state."""
        self._add(owner, slot, PLACES[state], number)

    def subtract(self, owner: str, slot: int, counts: Sequence[int]) -> None:
        """Count so many entities less, as `StateCounts` has them."""
        for place, number in enumerate(counts):
            self._add(owner, slot, place, -number)

    def __bool__(self) -> bool:
        return any(map(any, self._deltas.values()))

    def write(self, transaction: Transaction) -> None:
        """Write the changes, in an order that is the same for every transaction."""
        rows = [
            (slot, owner, *numbers)
            for (slot, owner), numbers in sorted(self._deltas.items())
            if any(numbers)
        ]
        if rows:
            transaction.many(_ADD, rows)

    def _add(self, owner: str, slot: int, place: int, number: int) -> None:
        if place == NO_PLACE:
            return
        numbers = self._deltas.get((slot, owner))
        if numbers is None:
            numbers = self._deltas[slot, owner] = [0, 0, 0, 0, 0]
        numbers[place] += number


def add_counts(transaction: Transaction, rows: Iterable[CountRow]) -> None:
    """Add the counts of slots that have none yet for these owners."""
    transaction.insert("check_counts", _COLUMNS, rows)


async def count_by_owner(database: Database, check_id: str) -> dict[str, StateCounts]:
    """The counts of a check by the owner of the entities, '' for those without one."""
    return dict(map(_make_counts, await database.all(_BY_OWNER, (check_id,))))


async def count_totals(
    database: Database, check_ids: Sequence[str] | None = None
) -> dict[str, StateCounts]:
    """The counts of every check in effect, or of those among these, by its id."""
    sql, values = (_TOTALS, []) if check_ids is None else (_TOTALS_OF, [list(check_ids)])
    return dict(map(_make_counts, await database.search(sql, values)))


async def count_of_owners(database: Database, owners: Sequence[str]) -> dict[str, StateCounts]:
    """The counts of every check over the entities of these owners, by its id."""
    return dict(map(_make_counts, await database.all(_OF_OWNERS, (list(owners),))))


def count_within(transaction: Transaction, slot: int) -> Mapping[str, StateCounts]:
    """The counts of a slot by owner, within a transaction."""
    return dict(map(_make_counts, transaction.all(_WITHIN, (slot,))))


def find_missing_counts(compared: Iterable[Row], slots: Sequence[int]) -> CountDeltas:
    """Differences of rows of `COUNT_COMPARISON` from the right counts of these slots in effect."""
    deltas, wanted = CountDeltas(), frozenset(slots)
    for owner, slot, states, *numbers in compared:
        if slot is None:
            for one in slots:
                if one <= len(states):
                    deltas.count(owner, one, states[one - 1], numbers[0])
        elif slot in wanted:
            deltas.subtract(owner, slot, numbers)
    return deltas


def _make_counts(row: Row) -> tuple[str, StateCounts]:
    return row[0], StateCounts(*map(int, row[1:]))


_NO_COUNTS: Final = StateCounts()


class DayCounts(NamedTuple):
    """Counts at the end of a day, which is counted from 1970-01-01."""

    day: int
    counts: StateCounts


async def record_days(database: Database, now: int, pace: Throttle) -> int:
    """Keep the counts of today for the owners whose last ones differ; returns how many."""
    kept = 0
    for one in await check_store.everything(database):
        if one.slot is not None:
            kept += await database.write(partial(_record_day, check_id=one.id, day=now // DAY))
            await pace.rest()
    return kept


async def read_day_totals(
    database: Database, check_id: str, first: int, last: int
) -> list[DayCounts]:
    """The counts of all owners together for every day from `first` to `last`, in order."""
    current: dict[str, StateCounts] = {}
    changes: dict[int, dict[str, StateCounts]] = {}
    for owner, day, *numbers in await database.search(_DAY_TOTALS, (check_id, last)):
        changes.setdefault(max(day, first), {})[owner] = StateCounts(*numbers)
    found = []
    for day in range(first, last + 1):
        current |= changes.get(day, {})
        found.append(DayCounts(day, _sum_day(current)))
    return found


async def sweep_days(database: Database, before: int, pace: Throttle) -> int:
    """Delete what is older than a time, but for the last counts from before it."""
    gone, deleted = 0, _DAYS_DELETED_AT_ONCE
    while deleted == _DAYS_DELETED_AT_ONCE:
        deleted = await database.write(
            lambda transaction: transaction.run(
                _FORGET_DAYS, (before // DAY, _DAYS_DELETED_AT_ONCE)
            )
        )
        gone += deleted
        await pace.rest()
    return gone


def _record_day(transaction: Transaction, check_id: str, day: int) -> int:
    # Its slot may be another one by now.
    publications.share_definitions(transaction)
    row = transaction.one("SELECT slot FROM checks WHERE id = ?", (check_id,))
    if row is None or row[0] is None:
        return 0
    now = count_within(transaction, row[0])
    last = {
        owner: StateCounts(*numbers)
        for owner, *numbers in transaction.all(_LAST_DAYS, (check_id, check_id))
    }
    rows = [
        (check_id, owner, day, *now.get(owner, _NO_COUNTS))
        for owner in sorted(now.keys() | last.keys())
        if now.get(owner, _NO_COUNTS) != last.get(owner, _NO_COUNTS)
    ]
    transaction.many(_KEEP_DAY, rows)
    return len(rows)


def _sum_day(counts: dict[str, StateCounts]) -> StateCounts:
    return StateCounts(*map(sum, zip(*counts.values(), strict=True))) if counts else _NO_COUNTS


_ADD = """
INSERT INTO check_counts (slot, owner, passing, failing, undecided, exempt, inapplicable)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (slot, owner) DO UPDATE SET passing = check_counts.passing + excluded.passing,
    failing = check_counts.failing + excluded.failing,
    undecided = check_counts.undecided + excluded.undecided,
    exempt = check_counts.exempt + excluded.exempt,
    inapplicable = check_counts.inapplicable + excluded.inapplicable
"""

_WITHIN = """
SELECT owner, passing, failing, undecided, exempt, inapplicable FROM check_counts
WHERE slot = ? ORDER BY owner
"""

_BY_OWNER = """
SELECT n.owner, n.passing, n.failing, n.undecided, n.exempt, n.inapplicable
FROM checks c JOIN check_counts n ON n.slot = c.slot WHERE c.id = ? ORDER BY n.owner
"""

_TOTALS = """
SELECT c.id, COALESCE(SUM(n.passing), 0), COALESCE(SUM(n.failing), 0),
    COALESCE(SUM(n.undecided), 0), COALESCE(SUM(n.exempt), 0), COALESCE(SUM(n.inapplicable), 0)
FROM checks c LEFT JOIN check_counts n ON n.slot = c.slot WHERE c.slot IS NOT NULL
GROUP BY c.id ORDER BY c.id
"""

_TOTALS_OF = _TOTALS.replace("GROUP BY", "AND c.id IN LIST(?) GROUP BY")

_OF_OWNERS = _TOTALS.replace("n.slot = c.slot", "n.slot = c.slot AND n.owner IN LIST(?)")

# How many entities have which states, and what is counted.
COUNT_COMPARISON: Final = """
SELECT owner, CAST(NULL AS INTEGER) AS slot, states, COUNT(*), 0, 0, 0, 0 FROM check_states
WHERE owner IN LIST(?) GROUP BY owner, states
UNION ALL
SELECT owner, slot, NULL, passing, failing, undecided, exempt, inapplicable FROM check_counts
WHERE owner IN LIST(?)
"""

_LAST_DAYS = """
SELECT d.owner, d.passing, d.failing, d.undecided, d.exempt, d.inapplicable
FROM check_days d JOIN (
    SELECT owner, MAX(day) AS day FROM check_days WHERE check_id = ? GROUP BY owner
) last ON last.owner = d.owner AND last.day = d.day WHERE d.check_id = ?
"""

_KEEP_DAY = """
INSERT INTO check_days
    (check_id, owner, day, passing, failing, undecided, exempt, inapplicable)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (check_id, owner, day) DO UPDATE SET passing = excluded.passing,
    failing = excluded.failing, undecided = excluded.undecided, exempt = excluded.exempt,
    inapplicable = excluded.inapplicable
"""

_DAY_TOTALS = """
SELECT owner, day, passing, failing, undecided, exempt, inapplicable FROM check_days
WHERE check_id = ? AND day <= ? ORDER BY day
"""

# A day is as the last one that is kept: that one has to stay.
_FORGET_DAYS = """
DELETE FROM check_days WHERE (check_id, owner, day) IN (
    SELECT d.check_id, d.owner, d.day FROM check_days d WHERE d.day < (
        SELECT MAX(n.day) FROM check_days n
        WHERE n.check_id = d.check_id AND n.owner = d.owner AND n.day <= ?
    ) LIMIT ?
)
"""
