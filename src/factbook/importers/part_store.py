"""The store of what is known of each part: its last readings, its problems, and held removals."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.errors import PreconditionFailedError
from factbook.events import event
from factbook.events import store as events
from factbook.importers.merge import Doubt
from factbook.importers.snapshot import ReadingProblem, set_name
from factbook.storage import Database, Row, Transaction

# More are counted, and not kept.
_MOST_PROBLEMS: Final = 1_000

_READ: Final = """
SELECT importer, part, state, read_at, complete_at, items, problem_count, problems, held, reason,
    spared, rights, seen_rights FROM import_parts
"""
_SAVE: Final = """
INSERT INTO import_parts (importer, part, state, read_at, complete_at, items, problem_count,
    problems, held, reason, spared, rights, seen_rights)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (importer, part) DO UPDATE SET state = excluded.state, read_at = excluded.read_at,
    complete_at = excluded.complete_at, items = excluded.items,
    problem_count = excluded.problem_count, problems = excluded.problems, held = excluded.held,
    reason = excluded.reason, spared = excluded.spared, rights = excluded.rights,
    seen_rights = excluded.seen_rights
"""

_MEANWHILE: Final = "The part {}/{} was read or decided on meanwhile; nothing was written."


class ImportPartRecord(NamedTuple):
    """A part after its last reading.

    `state` is complete, partial or held; `complete_at` is the time of the last complete reading,
    None if there was none. `rights` are those of the last believed reading, `seen_rights` those of
    the last one.
    """

    importer: str
    part: str
    state: str
    read_at: int
    complete_at: int | None
    items: int
    problem_count: int
    problems: Sequence[ReadingProblem] = ()
    held: Sequence[str] = ()
    reason: str = ""
    spared: Sequence[str] = ()
    rights: Sequence[str] = ()
    seen_rights: Sequence[str] = ()

    @property
    def tag(self) -> str:
        """Tag that differs after each reading of everything, and when less is held."""
        return f"{self.read_at}-{len(self.held)}"

    @property
    def doubt(self) -> Doubt:
        """Knowledge of this part for the guards of the next reading."""
        return Doubt(frozenset(self.rights), frozenset(self.spared))


async def part_records(database: Database, importer: str | None = None) -> list[ImportPartRecord]:
    """Every part, or those of one importer, in order."""
    where, given = ("", ()) if importer is None else (" WHERE importer = ?", (importer,))
    rows = await database.all(f"{_READ}{where} ORDER BY importer, part", given)
    return [_record(row) for row in rows]


async def part_record(database: Database, importer: str, part: str) -> ImportPartRecord | None:
    """A part; None before its first reading."""
    row = await database.one(f"{_READ} WHERE importer = ? AND part = ?", (importer, part))
    return None if row is None else _record(row)


def save(
    transaction: Transaction, record: ImportPartRecord, before: ImportPartRecord | None
) -> None:
    """Store a part after a reading or a decision that began with `before`.

    Removals that are held now, and were not before, are an event.
    Raises PreconditionFailedError if another reading or decision came meanwhile.
    """
    which = (record.importer, record.part)
    # A lock, since a part that was never read has no row to lock.
    transaction.lock("import {}/{}".format(*which))
    row = transaction.one(f"{_READ} WHERE importer = ? AND part = ?", which)
    if (None if row is None else _record(row)) != before:
        raise PreconditionFailedError(_MEANWHILE.format(*which))
    replace(transaction, record)
    if record.held and (before is None or set(record.held) - set(before.held)):
        told = event.of_held(set_name(*which), len(record.held), record.reason)
        events.append(transaction, [told], record.read_at)


def replace(transaction: Transaction, record: ImportPartRecord) -> None:
    """Store a part, whatever was known of it."""
    lists = (record.held, record.spared, record.rights, record.seen_rights)
    held, spared, rights, seen = (_json(sorted(one)) for one in lists)
    problems = _json(record.problems[:_MOST_PROBLEMS])
    transaction.run(
        _SAVE, (*record[:7], problems, held, record.reason, spared, rights, seen)
    )  # fmt: skip


def _record(row: Row) -> ImportPartRecord:
    plain, (problems, held, reason, *lists) = row[:7], row[7:]
    found = msgspec.json.decode(problems, type=list[ReadingProblem])
    spared, rights, seen_rights = map(_texts, lists)
    values = (*plain, found, _texts(held), reason, spared, rights, seen_rights)
    return ImportPartRecord._make(values)


def _texts(text: str) -> list[str]:
    return msgspec.json.decode(text, type=list[str])


def _json(values: Iterable[Any]) -> str:
    return msgspec.json.encode(list(values)).decode()
