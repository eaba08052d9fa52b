"""Equal records of the audit in a row, folded into one."""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from factbook.audit.trail import Record

# Actions whose objects are references of entities: of one kind they are equal.
_OF_ENTITIES = frozenset({"entity", "facts"})


class FoldedRecords(NamedTuple):
    """Equal records in a row, newest first; with several objects, `kind` is that of all of them."""

    records: list[Record]
    kind: str | None

    @property
    def newest(self) -> Record:
        return self.records[0]

    @property
    def oldest(self) -> Record:
        return self.records[-1]

    @property
    def things(self) -> int:
        """The number of different objects."""
        return len({record.object for record in self.records})


def folded(records: Iterable[Record]) -> list[FoldedRecords]:
    """Fold records by the same person, in the same way, of the same action on the same thing."""
    return [_of(list(same)) for _, same in groupby(records, _key)]


def alone(records: Iterable[Record]) -> list[FoldedRecords]:
    """Each record by itself."""
    return [FoldedRecords([record], None) for record in records]


def _of(records: list[Record]) -> FoldedRecords:
    has_several = any(record.object != records[0].object for record in records)
    return FoldedRecords(records, _thing(records[0]) if has_several else None)


def _key(record: Record) -> tuple[str, ...]:
    who = (record.actor, record.address, record.token, record.grant)
    return (*who, record.action, record.outcome, _thing(record))


def _thing(record: Record) -> str:
    """The kind of an entity, or the object itself."""
    kind, colon, _ = record.object.partition(":")
    is_entity = record.action.partition(".")[0] in _OF_ENTITIES and colon
    return kind if is_entity else record.object
