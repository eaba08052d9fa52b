"""Whether one order of the calls explains what every client of a history saw.

The search of Wing and Gong, with the memory that Lowe describes: of the calls not yet placed, any
may come next that began before the first of them ended; where the same calls led to the same state
before, nothing new can follow. A write whose answer is not known has no end and may be left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.model.calls import UNKNOWN, Answer, Call
from tests.model.guesses import Guesses
from tests.model.model import step
from tests.model.reads import READS
from tests.model.state import State


class Event(NamedTuple):
    """One call of a history, and when it began and ended on a counter that all clients share.

    One whose answer is UNKNOWN is a write, and ended after every other.
    """

    client: int
    actor: str
    call: Call
    answer: Answer
    began: int
    ended: int


def order(history: Sequence[Event]) -> list[Event] | None:
    """An order of the calls that explains every answer; None when there is none."""
    return _Search(history).run()


def is_idle(event: Event) -> bool:
    """Whether a call changes nothing, whatever the state: a read, or a refused write."""
    return changes_nothing(event.call) or event.answer.status >= 300


def changes_nothing(call: Call) -> bool:
    """Whether a call is no write, or only tries one."""
    return call.verb in READS or call.verb == "try"


def smallest(history: Sequence[Event]) -> list[Event]:
    """A part of a history without order that has none itself; only idle calls are left out."""
    left = list(history)
    for event in history:
        if is_idle(event):
            fewer = [other for other in left if other is not event]
            if order(fewer) is None:
                left = fewer
    return left


def table(history: Sequence[Event]) -> str:
    """A history for people, by when the calls began."""
    lines = []
    for event in sorted(history, key=lambda event: event.began):
        call = {
            key: value
            for key, value in event.call._asdict().items()
            if value and key not in {"verb", "namespace"}
        }
        lines.append(
            f"{event.began:>4}-{event.ended:<4} client {event.client}: {event.call.verb} {call}\n"
            f"{'':>10} -> {event.answer.status} {event.answer.body}"
        )
    return "\n".join(lines)


def unexplained(histories: Mapping[int, Sequence[Event]]) -> str:
    """The smallest part of the first history that no order explains, for people; else nothing."""
    for seed, history in histories.items():
        if order(history) is None:
            return f"No order explains the history {seed}:\n{table(smallest(history))}"
    return ""


class _Search:
    def __init__(self, history: Sequence[Event]) -> None:
        self._events = sorted(history, key=lambda event: event.began)
        self._known = sum(
            1 << at for at, event in enumerate(self._events) if event.answer != UNKNOWN
        )
        self._guesses = Guesses(event.answer.body for event in history)
        self._been: set[tuple[int, State]] = set()

    def run(self) -> list[Event] | None:
        return self._from(0, State())

    def _from(self, placed: int, state: State) -> list[Event] | None:
        """The rest of an order, after the calls of the bits `placed` led to this state."""
        if placed & self._known == self._known:
            return []
        if (placed, state) in self._been:
            return None
        self._been.add((placed, state))
        left = [(at, event) for at, event in enumerate(self._events) if not placed >> at & 1]
        first_end = min(event.ended for _, event in left)
        for at, event in left:
            if event.began > first_end:
                break
            for after in self._after(state, event):
                rest = self._from(placed | 1 << at, after)
                if rest is not None:
                    return [event, *rest]
        return None

    def _after(self, state: State, event: Event) -> Iterable[State]:
        """The states after a call, when it comes next."""
        if event.answer == UNKNOWN:
            return self._guesses.states(state, event.call, event.actor)
        after = step(state, event.call, event.actor, event.answer)
        return [] if after is None else [after]
