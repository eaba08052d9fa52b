"""Notice at the first start: the link to become the first administrator."""

import asyncio

from factbook import clock
from factbook.auth import invitations, users
from factbook.http import urls
from factbook.settings import Settings
from factbook.storage import Database, open_database

_NOBODY = """
Nobody has an account yet. This link makes the first administrator, once, within a day:

    {link}

`factbook people invite` prints another.
"""
_NO_ADDRESS = """
Nobody has an account yet. With the address of this service in place of ADDRESS,

    factbook people invite --server ADDRESS

prints a link that makes the first administrator.
"""


def words(settings: Settings, key: bytes) -> str:
    """What to tell whoever starts the service; empty where there is somebody.

    The link in it replaces the one of an earlier start. It belongs into no log: it lets in whoever
    reads it.
    """

    async def work() -> str:
        database = await open_database(settings.database_url, connections=3)
        try:
            return await _words(database, urls.server(settings), key)
        finally:
            await database.close()

    return asyncio.run(work())


async def _words(database: Database, server: str | None, key: bytes) -> str:
    if server is None:
        return "" if await users.any_there(database) else _NO_ADDRESS
    secret, now = invitations.generate(), clock.now()
    made = await database.write(
        lambda transaction: invitations.replace_first(
            transaction, invitations.digest(secret, key), now, invitations.FIRST_LIFETIME
        )
    )
    return _NOBODY.format(link=urls.welcome(server, secret)) if made else ""
