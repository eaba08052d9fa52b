"""Rows of a list of REST: all that there are, or told to be incomplete."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from factbook.outbound import Answer
from factbook.outbound.outcomes import Missing, Outcome, read_as

_NO_TOTAL: Final = Missing(Outcome.INCOMPLETE, "no total in the answer")
_CHANGED: Final = Missing(Outcome.TRANSIENT, "the list changed each time that it was read")
_READINGS: Final = 3


class _Identified(Protocol):
    id: int


Row = TypeVar("Row", bound=_Identified)


@dataclass
class RowListing(Generic[Row]):
    """The rows by id in the order of the list, and the reason if it is not complete.

    `total` is the largest that a page has told: a later page may be wrong. `pages` counts those
    that were read.
    """

    rows: dict[int, Row] = field(default_factory=dict)
    missing: Missing | None = None
    total: int | None = None
    pages: int = 0

    def take(self, page: Sequence[Any] | Missing, type_: type[Row]) -> bool:
        """Add the rows of a page; false if it brings no new one, or is none."""
        if isinstance(page, Missing):
            self.missing = self.missing or page
            return False
        self.pages += 1
        before = len(self.rows)
        for one in page:
            row = read_as(one, type_)
            if isinstance(row, Missing):
                self.missing = self.missing or row
            else:
                self.rows[row.id] = row
        return len(self.rows) > before

    def count(self, answer: Answer, header: str) -> None:
        """Note the total in a header of an answer, if there is one."""
        text = answer.headers.get(header, "")
        if text.isascii() and text.isdigit() and len(text) < 12:
            self.total = max(self.total or 0, int(text))

    def sort(self) -> None:
        """Order the rows by their ids."""
        self.rows = dict(sorted(self.rows.items()))

    def end(self, most_uncounted: int = 0) -> None:
        """Compare the rows with their total; lists that are longer than this may have none."""
        read = len(self.rows)
        if self.total is None and read <= most_uncounted:
            self.missing = self.missing or _NO_TOTAL
        elif read < (self.total or 0):
            text = f"{read:,} of {self.total:,} were listed"
            self.missing = self.missing or Missing(Outcome.INCOMPLETE, text)


async def agreed(read: Callable[[], Awaitable[RowListing[Row]]]) -> RowListing[Row]:
    """The rows of a list that its host does not sort, as two readings in a row have them.

    When a row goes between two pages, and another comes behind the last, a third one moves to a
    page that was read, and the total is right without it. The next reading does not have the one
    that went. A list of one page is always whole.
    """
    found = await read()
    for _ in range(_READINGS - 1):
        if found.missing or found.pages < 2:
            return found
        before, found = found.rows.keys(), await read()
        if found.rows.keys() == before:
            return found
    found.missing = found.missing or (_CHANGED if found.pages > 1 else None)
    return found
