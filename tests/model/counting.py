"""What happened in histories: how often each outcome, and how many calls met another."""

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.model.checking import Event, is_idle


def outcomes(histories: Iterable[Sequence[Event]]) -> Counter[str]:
    """How often each outcome of each verb was seen."""
    found: Counter[str] = Counter()
    for history in histories:
        found["histories"] += 1
        found["calls"] += len(history)
        found["calls that overlap another"] += sum(_overlaps(history, event) for event in history)
        found["writes that overlap another"] += sum(
            _overlaps([other for other in history if not is_idle(other)], event)
            for event in history
            if not is_idle(event)
        )
        found.update(_outcome(event) for event in history)
        found.update("moved to another set" for event in history if _took(history, event))
    return found


def _overlaps(history: Sequence[Event], event: Event) -> bool:
    return any(
        other is not event and other.began < event.ended and event.began < other.ended
        for other in history
    )


def _outcome(event: Event) -> str:
    body = event.answer.body
    why = ""
    if event.answer.status == 409:
        why = " held by another" if "conflicts" in body else " too many removals"
    return f"{event.call.verb} {event.answer.status}{why}"


def _took(history: Sequence[Event], event: Event) -> bool:
    """Whether a write moved an entity from where an earlier answer showed it."""
    if is_idle(event) or event.answer.status != 200:
        return False
    sets = {
        item["entityRef"]: item["set"]
        for other in history
        if other.ended < event.began and other.answer.status == 200 and not is_idle(other)
        for item in other.answer.body.get("items", [other.answer.body])
    }
    return any(
        sets.get(item["entityRef"], item["set"]) != item["set"]
        for item in event.answer.body.get("items", [event.answer.body])
    )
