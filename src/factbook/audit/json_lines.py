"""The audit as JSON lines: one record each, oldest first."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

import msgspec

from factbook.audit import trail
from factbook.audit.trail import AuditPosition, Record
from factbook.clock import MINUTE, iso
from factbook.schemas.events import AuditLine, AuditRecord
from factbook.storage import Database

# A record has the time at which its write began. Later than this it is there, or the write failed.
SETTLED: Final = 5 * MINUTE
CURSOR: Final = r"[0-9]{1,15}/[0-9a-f]{16}"


class ClockWatch:
    """Warns, once each time, when the clock is before the last exported record.

    Records are ordered by time: those written then sort before it.
    """

    def __init__(self, warn: Callable[[str], object]) -> None:
        self._warn = warn
        self._is_back = False

    def look(self, now: int, last: AuditPosition | None) -> None:
        """Warn if the clock has been set back that far since the last look."""
        was_back, self._is_back = self._is_back, last is not None and now < last.at
        if last is not None and self._is_back and not was_back:
            self._warn(
                f"The clock was set back: it is {iso(now)}, and the last record exported is of "
                f"{iso(last.at)}. What is recorded until then is missing. Export it afterwards:"
                f" factbook audit export --since {iso(now - SETTLED)} --until {iso(last.at)}"
            )


def cursor(record: Record) -> str:
    """Text form of a record's place."""
    return f"{record.at}/{record.id}"


def place(cursor: str) -> AuditPosition:
    """Place of a text that matches CURSOR."""
    at, _, id_ = cursor.partition("/")
    return AuditPosition(int(at), id_)


def shown(record: Record) -> AuditRecord:
    """A record as every interface shows it."""
    return AuditRecord(**_members(record))


def _members(record: Record) -> dict[str, Any]:
    detail = msgspec.Raw(record.detail)
    return {**record._asdict(), "at": iso(record.at), "detail": detail}


def encoded(records: Sequence[Record]) -> bytes:
    """A line for each record, with the cursor to continue after it."""
    listed = [AuditLine(**_members(record), cursor=cursor(record)) for record in records]
    return msgspec.json.Encoder().encode_lines(listed)


async def lines(database: Database, **wanted: Any) -> AsyncIterator[bytes]:
    """The lines of the result of `trail.export`, many at a time."""
    async for records in trail.export(database, **wanted):
        yield encoded(records)
