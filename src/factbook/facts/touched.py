"""Topics under which writes of facts tell what they touched, for what is derived from facts."""

from collections.abc import Iterable, Iterator
from typing import Final

from factbook.storage import Transaction
from factbook.storage.touches import Topic, Touched

_VALUES: Final = "facts"
_TIMES: Final = "times of facts"


def values(transaction: Transaction, source_id: str, entity_ids: Iterable[int]) -> None:
    """Tell that latest facts of a source about these entities, or reasons, may have changed."""
    transaction.touch((_VALUES, source_id), entity_ids)


def times(transaction: Transaction, source_id: str, entity_ids: Iterable[int]) -> None:
    """Tell that facts of a source were confirmed for these entities: only their time changed."""
    transaction.touch((_TIMES, source_id), entity_ids)


def changed(touched: Touched) -> Iterator[tuple[str, bool, set[int]]]:
    """(source id, true if more than times may have changed, entity ids) of what was touched."""
    for topic, ids in touched.items():
        if _is_ours(topic):
            yield topic[1], topic[0] == _VALUES, ids


def _is_ours(topic: Topic) -> bool:
    return topic[0] in (_VALUES, _TIMES)
