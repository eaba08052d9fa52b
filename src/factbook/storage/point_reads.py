"""Batching of point reads: those that wait at the same moment share one query."""

import asyncio
from collections.abc import Awaitable, Callable

from factbook.storage.database import Parameters, Row

Fetch = Callable[[str, Parameters], Awaitable[list[Row]]]


class Finder:
    """Collects the keys requested while a query runs, and reads them with the next one."""

    def __init__(self, fetch: Fetch, sql: str) -> None:
        self._fetch = fetch
        self._sql = sql
        self._waiting: dict[str, list[asyncio.Future[Row | None]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def find(self, key: str) -> Row | None:
        """The row whose first column is the key."""
        future: asyncio.Future[Row | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(future)
        if self._task is None:
            self._task = asyncio.create_task(self._answer())
        return await future

    async def _answer(self) -> None:
        try:
            while self._waiting:
                asked, self._waiting = self._waiting, {}
                await self._query(asked)
        finally:
            self._task = None

    async def _query(self, asked: dict[str, list[asyncio.Future[Row | None]]]) -> None:
        try:
            rows = await self._fetch(self._sql, (list(asked),))
        except BaseException as error:
            for future in (future for futures in asked.values() for future in futures):
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        found = {row[0]: row for row in rows}
        for key, futures in asked.items():
            for future in futures:
                if not future.done():
                    future.set_result(found.get(key))
