"""Lists of a vendor that are read page by page, to their end or not at all."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from factbook.outbound.cache import Memory, exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.outcomes import REPEATED, Missing, report_too_many


class Identified(Protocol):
    """Row of a list, with the id that tells it from others."""

    id: Any


Row = TypeVar("Row", bound=Identified)
Value = TypeVar("Value")


async def together(*readings: Coroutine[Any, Any, Value]) -> list[Value]:
    """The results of several readings at the same time.

    The first error is raised once the others are cancelled, which would call on for nothing.
    """
    tasks = [asyncio.ensure_future(reading) for reading in readings]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@dataclass(frozen=True)
class NumberedPages(Generic[Row, Value]):
    """Reader of lists whose pages have numbers, in one collection.

    A page of fewer rows than `size` is the last one. A list of more than `most` pages is too large,
    and is not read again for days; `vendor` is the title that is named then. `value` is what is
    kept of a row.
    """

    memory: Memory
    now: int
    vendor: str
    size: int
    most: int
    value: Callable[[Row], Value]

    async def rows(
        self, name: str, page: Callable[[int], Awaitable[Sequence[Row] | Missing]]
    ) -> list[Value] | Missing:
        """The value of every row of a list, or the reason that it is incomplete.

        `page` gives the rows of a page, from page 0 on. A row that moves to a later page during
        reading counts once. A page that brings nothing new means that pages repeat.
        """
        most = self.size * self.most
        too_large = report_too_many(most, f"rows in one listing of {self.vendor}")
        if await exceeds_noted_limit(self.memory, name, most, self.now):
            return too_large
        found: dict[Any, Value] = {}
        for number in range(self.most):
            rows = await page(number)
            if isinstance(rows, Missing):
                return rows
            before = len(found)
            found.update({row.id: self.value(row) for row in rows})
            if len(rows) < self.size:
                return list(found.values())
            if len(found) == before:
                return REPEATED
        await note_exceeded_limit(self.memory, name, most, self.now)
        return too_large
