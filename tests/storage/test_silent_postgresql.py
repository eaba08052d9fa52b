"""A PostgreSQL that keeps its connections and says nothing any more, or that leaves."""

import asyncio
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

import pytest
from psycopg.conninfo import conninfo_to_dict

from factbook.errors import UnavailableError
from factbook.storage.database_url import open_database
from factbook.storage.postgresql_connections import WRITERS, Pools

ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


class Proxy:
    """Stands between a client and a server, and passes on what both say until it is silent."""

    def __init__(self, url: str) -> None:
        self.silent = False
        self._given = conninfo_to_dict(url)
        self._url = url
        self._pumps: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """The address under which the server is found."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        user = urlsplit(self._url).netloc.rpartition("@")[0] or "postgres"
        parts = urlsplit(self._url)._replace(netloc=f"{user}@127.0.0.1:{port}", query="")
        try:
            yield urlunsplit(parts)
        finally:
            server.close()
            for pump in self._pumps:
                pump.cancel()
            await asyncio.gather(*self._pumps, return_exceptions=True)

    def leave(self) -> None:
        """Cut all connections, and take no more."""
        self.silent = True
        for pump in self._pumps:
            pump.cancel()

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        host, port = str(self._given["host"]), int(self._given.get("port") or 5432)
        if self.silent:
            writer.close()
            return
        if host.startswith("/"):
            above = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            above = await asyncio.open_connection(host, port)
        self._pumps += [
            asyncio.create_task(self._pump(reader, above[1])),
            asyncio.create_task(self._pump(above[0], writer)),
        ]

    async def _pump(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            while said := await reader.read(65_536):
                if not self.silent:
                    writer.write(said)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


def looks() -> int:
    """How many looks at the connections of a pool are under way."""
    names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
    return names.count("AsyncConnectionPool.check")


@pytest.mark.system
@ON_POSTGRESQL
async def test_reads_share_one_look_at_silent_connections_which_ends_with_the_pool(
    database_url: str,
) -> None:
    proxy = Proxy(database_url)
    async with proxy.serving() as url:
        pools = Pools(url, 6)
        await pools.open()
        proxy.silent = True
        reads = [asyncio.create_task(pools.look()) for _ in range(3)]
        async with asyncio.timeout(60):
            while not looks():  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)
        assert looks() == 1
        async with asyncio.timeout(60):
            await asyncio.gather(pools.close(), *reads)
        assert looks() == 0


@pytest.mark.system
@ON_POSTGRESQL
async def test_a_write_that_finds_all_connections_cut_does_not_outlast_the_database(
    database_url: str,
) -> None:
    proxy = Proxy(database_url)
    async with proxy.serving() as url:
        database = await open_database(url)
        together = threading.Barrier(WRITERS)
        await asyncio.gather(
            *(database.write(lambda transaction: together.wait()) for _ in range(WRITERS))
        )
        proxy.leave()
        writing = asyncio.create_task(database.write(lambda transaction: None))
        # One that asks in the middle of the end is told that it is the end, not that time is over.
        await asyncio.sleep(0)
        await database.close()
        with pytest.raises(UnavailableError) as raised:
            await writing
    assert "PoolClosed" in raised.value.cause
