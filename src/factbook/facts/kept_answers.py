"""Answers that take long to count in a large catalog, kept for a minute by this process.

Who turns a page or sorts a table asks for the same figures again. An answer has the time at which
it was counted; in a catalog in which counting takes no time, nothing is kept.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from factbook.catalog.store import overview
from factbook.clock import MINUTE, Clock
from factbook.storage import Database

T = TypeVar("T")

# Entities of a catalog from which on answers are kept: a count of fewer takes some 60 ms.
_LARGE: Final = 20_000
_MOST: Final = 64


class KeptAnswer(NamedTuple, Generic[T]):
    """An answer and the time of it."""

    value: T
    at: int


class _Question:
    def __init__(self) -> None:
        self.one_at_a_time = asyncio.Lock()
        self.answer: KeptAnswer[Any] | None = None


class KeptAnswers:
    """The answers of a process, of which the one that was asked for longest ago goes first."""

    def __init__(self) -> None:
        self.large = _LARGE
        self._questions = OrderedDict[str, _Question]()

    def question(self, text: str) -> _Question:
        """The answers to a question that are known, also if there are none."""
        found = self._questions.setdefault(text, _Question())
        self._questions.move_to_end(text)
        if len(self._questions) > _MOST:
            self._questions.popitem(last=False)
        return found


async def answer(
    database: Database,
    clock: Clock,
    question: str,
    count: Callable[[], Awaitable[T]],
    *,
    anew: bool = False,
) -> KeptAnswer[T]:
    """The answer, counted within the last minute, or with `anew` after this was called.

    Those who ask the same at the same time wait for one count.
    """
    kept = database.remembered.of(KeptAnswers)
    asked, asked_at = kept.question(question), clock()
    least = asked_at if anew else asked_at - MINUTE
    async with asked.one_at_a_time:
        if asked.answer is not None and least <= asked.answer.at <= clock():
            return asked.answer
        at = clock()
        found = KeptAnswer(await count(), at)
        size = sum((await overview.by_kind(database)).values())
        asked.answer = found if size >= kept.large else None
        return found
