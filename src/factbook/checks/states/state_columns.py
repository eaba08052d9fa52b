"""States of the entities of one owner as columns, which are counted and compared as whole."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from factbook.checks.state import NONE
from factbook.checks.states.change_store import ChangeRow
from factbook.checks.states.count_store import NO_PLACE, PLACES, CountRow
from factbook.checks.states.state_store import EntityStates


class StatePair(NamedTuple):
    """A slot of a check, and the one that takes its place; None for one before the first."""

    check_id: str
    before: int | None
    after: int


class OwnedStates(NamedTuple):
    """The states of the entities of one owner in these slots, one entity after the other."""

    owner: str
    entity_ids: Sequence[int]
    states: bytes
    slots: Sequence[int]

    def counts(self, pair: StatePair) -> list[CountRow]:
        """The row of counts of a slot, if it has anything to count."""
        column = self._column(pair.after)
        numbers = [0, 0, 0, 0, 0]
        for value in set(column):
            if PLACES[value] != NO_PLACE:
                numbers[PLACES[value]] += column.count(value)
        passing, failing, undecided, exempt, inapplicable = numbers
        row = (pair.after, self.owner, passing, failing, undecided, exempt, inapplicable)
        return [row] if any(numbers) else []

    def changes(self, pair: StatePair, why: str) -> Iterator[ChangeRow]:
        """Changes for the entities when the one slot takes the place of the other."""
        if pair.before is None:
            return
        before, after = self._column(pair.before), self._column(pair.after)
        if before == after:
            return
        for entity_id, was, now in zip(self.entity_ids, before, after, strict=True):
            if was not in (now, NONE):
                yield pair.check_id, entity_id, was, now, why

    def _column(self, slot: int) -> bytes:
        return self.states[self.slots.index(slot) :: len(self.slots)]


def by_owner(
    pages: Iterable[Sequence[EntityStates]], slots: Sequence[int]
) -> Iterator[OwnedStates]:
    """The states of entities that come by owner, which are those in these slots."""
    owner, ids, gathered = "", list[int](), list[bytes]()
    for page in pages:
        for one in page:
            if one.owner != owner and ids:
                yield OwnedStates(owner, ids, b"".join(gathered), slots)
                ids, gathered = [], []
            owner = one.owner
            ids.append(one.entity_id)
            gathered.append(one.states)
    if ids:
        yield OwnedStates(owner, ids, b"".join(gathered), slots)
