"""Trials of writes: what they would change in the results of checks. Nothing of them stays."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar, cast

from factbook.catalog.store import apply, collectable, ownership
from factbook.checks import state
from factbook.checks.maintenance import incremental
from factbook.checks.maintenance.check_set import CheckCache
from factbook.checks.states import state_store
from factbook.checks.states.state_store import EntityStates
from factbook.clock import Clock
from factbook.storage import Database, Transaction

T = TypeVar("T")

_NO_STATES: Final = EntityStates(0, "", b"", None)


class ResultDifference(NamedTuple):
    """A result that would be another one, in words; `before` is None of an entity that is new."""

    ref: str
    check_id: str
    before: str | None
    after: str


Look = Callable[[Transaction, Sequence[ResultDifference]], None]


class _TakenBackError(Exception):
    """A write was done and evaluated, and is taken back."""

    def __init__(self, result: object) -> None:
        self.result = result


class WriteTrial:
    """A runner of one write in a transaction that is evaluated and then taken back.

    It takes the locks of the write, and as long as the write and its evaluation.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.differences: list[ResultDifference] = []

    async def write(self, function: Callable[[Transaction], T], look: Look | None = None) -> T:
        """Run the function, note what it would change, and return its result.

        `look` is called with the differences, while they can still be looked into.
        """
        try:
            return await self._database.write(partial(self._try, function=function, look=look))
        except _TakenBackError as taken:
            return cast("T", taken.result)

    def _try(
        self, transaction: Transaction, function: Callable[[Transaction], T], look: Look | None
    ) -> T:
        result = function(transaction)
        self.differences = sorted(self._evaluated(transaction), key=lambda one: one[:2])
        if look is not None:
            look(transaction, self.differences)
        raise _TakenBackError(result)

    def _evaluated(self, transaction: Transaction) -> Iterator[ResultDifference]:
        cache = self._database.remembered.of(CheckCache)
        touched = transaction.touched.get(apply.TOUCHED, set[int]())
        ids = sorted(touched | ownership.owned(transaction))
        before = state_store.read(transaction, ids)
        incremental.evaluate_touched(transaction, cache, self._clock)
        after = state_store.read(transaction, ids)
        changed = [id_ for id_ in after if after[id_] != before.get(id_)]
        refs = collectable.refs_of(transaction, changed)
        known = cache.current(transaction)
        for id_ in changed:
            old = before.get(id_)
            was, now = ((one or _NO_STATES).padded(known.width) for one in (old, after[id_]))
            for check_id, slot in known.slots.items():
                words = None if old is None else state.word(was[slot]), state.word(now[slot])
                if words[0] != words[1] and (words[0] is not None or now[slot] != state.OUT):
                    yield ResultDifference(refs[id_], check_id, *words)
