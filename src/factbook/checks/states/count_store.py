"""The store of counts: entities by slot, owner and state, changed with the states themselves."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from factbook.checks import state
from factbook.storage import Database, Row, Transaction


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


# The place of a state in the counts.
_PLACES: Final = {state.PASS: 0, state.FAIL: 1, state.UNKNOWN: 2, state.INAPPLICABLE: 4}
_EXEMPT_PLACE: Final = 3
NO_PLACE: Final = -1
PLACES: Final = tuple(
    _EXEMPT_PLACE if value & state.EXEMPT else _PLACES.get(value, NO_PLACE) for value in range(256)
)
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


def add(transaction: Transaction, rows: Iterable[CountRow]) -> None:
    """Add the counts of slots that have none yet for these owners."""
    transaction.insert("check_counts", _COLUMNS, rows)


async def by_owner(database: Database, check_id: str) -> dict[str, StateCounts]:
    """The counts of a check by the owner of the entities, '' for those without one."""
    return dict(map(_counts, await database.all(_BY_OWNER, (check_id,))))


async def totals(
    database: Database, check_ids: Sequence[str] | None = None
) -> dict[str, StateCounts]:
    """The counts of every check in effect, or of those among these, by its id."""
    sql, values = (_TOTALS, []) if check_ids is None else (_TOTALS_OF, [list(check_ids)])
    return dict(map(_counts, await database.search(sql, values)))


async def of_owners(database: Database, owners: Sequence[str]) -> dict[str, StateCounts]:
    """The counts of every check over the entities of these owners, by its id."""
    return dict(map(_counts, await database.all(_OF_OWNERS, (list(owners),))))


def within(transaction: Transaction, slot: int) -> Mapping[str, StateCounts]:
    """The counts of a slot by owner, within a transaction."""
    return dict(map(_counts, transaction.all(_WITHIN, (slot,))))


def missing(compared: Iterable[Row], slots: Sequence[int]) -> CountDeltas:
    """Differences of rows of `COMPARISON` from the right counts of these slots in effect."""
    deltas, wanted = CountDeltas(), frozenset(slots)
    for owner, slot, states, *numbers in compared:
        if slot is None:
            for one in slots:
                if one <= len(states):
                    deltas.count(owner, one, states[one - 1], numbers[0])
        elif slot in wanted:
            deltas.subtract(owner, slot, numbers)
    return deltas


def _counts(row: Row) -> tuple[str, StateCounts]:
    return row[0], StateCounts(*map(int, row[1:]))


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
COMPARISON: Final = """
SELECT owner, CAST(NULL AS INTEGER) AS slot, states, COUNT(*), 0, 0, 0, 0 FROM check_states
WHERE owner IN LIST(?) GROUP BY owner, states
UNION ALL
SELECT owner, slot, NULL, passing, failing, undecided, exempt, inapplicable FROM check_counts
WHERE owner IN LIST(?)
"""
