"""Readings of a code host by its API, with the credential of an account."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from factbook.importers.importer import ReadingContext
from factbook.importers.snapshot import Snapshot
from factbook.outbound import HttpClient, Memory

Api = TypeVar("Api")
Options = TypeVar("Options")
Further = TypeVar("Further")


def with_api(
    api: Callable[[HttpClient, Any, Memory, int], Api],
    read: Callable[[Api, Options, Further], Awaitable[Snapshot]],
) -> Callable[[ReadingContext, Options, Further], Awaitable[Snapshot]]:
    """The reading of a kind, whether of everything or of what hints name, from one by an API."""

    async def work(reading: ReadingContext, options: Options, further: Further) -> Snapshot:
        made = api(reading.client, reading.account, reading.memory, reading.now)
        return await read(made, options, further)

    return work
