"""Notice at the first start: the link to become the first administrator."""

from factbook.auth import invitations, users
from factbook.errors import UnavailableError
from factbook.http import urls
from factbook.http.context import HandlerContext

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
_NO_LINK = """
Nobody has an account yet, and no link can be made now: {reason}
Afterwards `factbook people invite` prints one.
"""


async def words(state: HandlerContext) -> str:
    """Notice for the person who starts the service; empty if there are people already.

    Its link replaces the one of an earlier start. Never log it: it gives access to anybody who
    reads it.
    """
    database, server = state.database, urls.server(state.settings)
    if server is None:
        return "" if await users.has_users(database) else _NO_ADDRESS
    if await users.has_users(database):
        return ""
    secret, now = invitations.generate_invitation_secret(), state.clock()
    try:
        made = await database.write(
            lambda transaction: invitations.replace_first_invitation(
                transaction,
                invitations.hash_invitation_secret(secret, state.token_key),
                now,
                invitations.FIRST_LIFETIME,
            )
        )
    except UnavailableError as error:
        return _NO_LINK.format(reason=error.message)
    return _NOBODY.format(link=urls.welcome(server, secret)) if made else ""
