"""People, and what is theirs, as tests put them into the database."""

from typing import Any

from factbook.auth import invitations, permissions, sessions, tokens, users
from factbook.auth.users import Person
from factbook.clock import DAY
from factbook.storage import Database
from tests.service import NOON

KIM = "user:default/kim"
LOU = "user:default/lou"
READ = frozenset({permissions.CATALOG_READ})
RUN = frozenset({permissions.SOURCE_RUN})


async def add(database: Database, ref: str = KIM, **given: Any) -> Person:
    """A new person, an administrator."""
    wanted = {
        "display_name": "Kim",
        "role": permissions.ADMINISTRATOR,
        "created_by": "test",
        "now": NOON,
        **given,
    }
    return await database.write(lambda tx: users.create_user(tx, ref=ref, **wanted))


async def add_token(
    database: Database, digest: str, owner: str = KIM, may: frozenset[str] = READ
) -> None:
    await database.write(
        lambda tx: tokens.create_token(
            tx,
            name=digest,
            digest=digest,
            owner=owner,
            permissions=may,
            created_by="test",
            now=NOON,
            lifetime=None,
        )
    )


async def add_session(database: Database, hash_: str, ref: str = KIM) -> None:
    await database.write(
        lambda tx: sessions.start_session(
            tx, hash=hash_, ref=ref, now=NOON, lifetime=DAY, address="", agent=""
        )
    )


async def add_invitation(database: Database, digest: str, **given: Any) -> None:
    wanted = {"role": permissions.VIEWER, "made_by": LOU, "now": NOON, "lifetime": DAY, **given}
    await database.write(lambda tx: invitations.create_invitation(tx, digest=digest, **wanted))


async def grant(database: Database, digest: str) -> tokens.Grant:
    database.refresh()
    found = await tokens.find_token(database, digest)
    assert found is not None
    return found


async def change_role(database: Database, ref: str, role: str) -> None:
    await database.write(lambda tx: users.change_user_role(tx, ref, role, NOON + 1))


async def disable(database: Database, ref: str) -> None:
    await database.write(lambda tx: users.disable_user(tx, ref, NOON + 1))


async def invited(database: Database) -> list[str]:
    return [one.id for one in await invitations.list_invitations(database, NOON)]
