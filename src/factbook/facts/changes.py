"""Detection of changed facts in a write, to publish events and to evaluate what depends on them.

The first facts about an entity are not a change, including those that another process writes
concurrently.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog.piecewise import weighed
from factbook.catalog.store import collectable
from factbook.events import event
from factbook.events import store as events
from factbook.storage import Transaction
from factbook.storage.touches import Touched

# Bytes of JSON: of a value that is told, of all those of an entity, and of a row of events.
LARGEST: Final = 1024
_OF_AN_ENTITY: Final = 16 * 1024
_OF_A_ROW: Final = 64 * 1024

# Topics under which writes tell what they touched, for what is derived from facts.
_VALUES: Final = "facts"
_TIMES: Final = "times of facts"


class Before(NamedTuple):
    """The stored facts of an entity, JSON except for the times; `written_at` 0: never collected."""

    facts: str
    reasons: str
    version: str
    written_at: int
    kept: str


def lock(transaction: Transaction, source_id: str) -> None:
    """Wait until nobody else writes the latest facts of a source, and keep others from it.

    The rows themselves are not locked: a cluster has them on several machines.
    """
    transaction.lock(f"facts of {source_id}")


def before(transaction: Transaction, source_id: str, entity_ids: list[int]) -> dict[int, Before]:
    """The stored facts of one source about the entities.

    Until the transaction ends no other one reads them to write facts of the source.
    """
    lock(transaction, source_id)
    rows = transaction.all(_STORED, (source_id, entity_ids)) if entity_ids else []
    return {entity_id: Before(*row) for entity_id, *row in rows}


def tell(
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
        and (told := differences(was.facts, facts))
    }
    if not changed:
        return
    refs = collectable.refs_of(transaction, changed)
    found = [_json((ref, changed[id_])) for id_, ref in sorted(refs.items())]
    rows = (
        event.of_facts(source_id, [msgspec.Raw(text) for text in some])
        for some in weighed(found, len, most=len(found), heaviest=_OF_A_ROW)
    )
    events.append(transaction, rows, now)


def differences(was: str, since: str) -> dict[str, dict[str, Any]]:
    """The change of each fact that differs: its value `from` the old text `to` the new one.

    None means no value. Values that are too large are `omitted`.
    """
    old, new = _members(was), _members(since)
    told: dict[str, dict[str, Any]] = {
        name: {"from": old.get(name), "to": value}
        for name, value in new.items()
        if name not in old or not _same(old[name], value)
    }
    told |= {name: {"from": old[name], "to": None} for name in old if name not in new}
    return told if len(was) + len(since) <= LARGEST else _bounded(told)


def touch_values(transaction: Transaction, source_id: str, entity_ids: Iterable[int]) -> None:
    """Tell that latest facts of a source about these entities, or reasons, may have changed."""
    transaction.touch((_VALUES, source_id), entity_ids)


def touch_times(transaction: Transaction, source_id: str, entity_ids: Iterable[int]) -> None:
    """Tell that facts of a source were confirmed for these entities: only their time changed."""
    transaction.touch((_TIMES, source_id), entity_ids)


def touched(topics: Touched) -> Iterator[tuple[str, bool, set[int]]]:
    """(source id, true if more than times may have changed, entity ids) of what was touched."""
    for topic, ids in topics.items():
        if topic[0] in (_VALUES, _TIMES):
            yield topic[1], topic[0] == _VALUES, ids


def _bounded(told: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    room = _OF_AN_ENTITY
    for name, values in told.items():
        sizes = [len(_json(value)) for value in values.values()]
        room -= sum(sizes)
        if room < 0 or max(sizes) > LARGEST:
            told[name] = {"omitted": True}
    return told


def _same(one: Any, other: Any) -> bool:
    # In Python 1 and True are the same.
    return one == other and type(one) is type(other)


_members = msgspec.json.Decoder(dict[str, Any]).decode
_json = msgspec.json.encode

_STORED = """
SELECT entity_id, facts, reasons, version, written_at, kept FROM facts_latest
WHERE source_id = ? AND entity_id IN LIST(?)
"""
