"""Tokens in the database."""

import pytest

from factbook.auth import tokens
from factbook.clock import MINUTE
from factbook.errors import NotFoundError
from factbook.storage import Database
from tests.service import NOON


async def create(
    database: Database, name: str, digest: str, **given: int | None
) -> tokens.StoredToken:
    """A new token of Kim's that may read entities."""
    lifetime = given.get("lifetime")
    return await database.write(
        lambda transaction: tokens.create_token(
            transaction,
            name=name,
            digest=digest,
            owner="user:default/kim",
            permissions=frozenset({"catalog.entity.read"}),
            created_by="test",
            now=NOON + (given.get("later") or 0),
            lifetime=lifetime,
        )
    )


@pytest.mark.spec("token.has-an-owner", "token.has-permissions", "token.has-a-name")
async def test_a_token_is_found_by_its_hash_alone(database: Database) -> None:
    made = await create(database, "agent", "d1", lifetime=5)
    await create(database, "other", "d2")
    found = await tokens.find_token(database, "d1")
    assert found == tokens.Grant(
        made.id, "user:default/kim", frozenset({"catalog.entity.read"}), NOON + 5, None, None
    )
    for digest in ("d3", "", "D1", made.id, "agent"):
        assert await tokens.find_token(database, digest) is None


async def test_tokens_are_listed_newest_first_without_the_revoked(database: Database) -> None:
    await create(database, "old", "d1")
    await create(database, "new", "d2", later=2)
    await create(database, "gone", "d3", later=1)
    await database.write(lambda tx: tokens.revoke_token(tx, "gone", NOON + 3))
    assert [token.name for token in await tokens.list_tokens(database)] == ["new", "old"]


async def test_a_name_that_two_tokens_have_does_not_say_which_to_revoke(
    database: Database,
) -> None:
    one, two = await create(database, "twin", "d1"), await create(database, "twin", "d2")
    with pytest.raises(NotFoundError, match="more than one token"):
        await database.write(lambda tx: tokens.revoke_token(tx, "twin", NOON))
    revoked = await database.write(lambda tx: tokens.revoke_token(tx, one.id, NOON))
    assert (revoked.id, revoked.revoked_at) == (one.id, NOON)
    assert (await database.write(lambda tx: tokens.revoke_token(tx, "twin", NOON))).id == two.id
    with pytest.raises(NotFoundError, match="no token"):
        await database.write(lambda tx: tokens.revoke_token(tx, "twin", NOON))


@pytest.mark.spec("token.last-use-written-once-a-minute")
async def test_processes_together_note_a_use_once_a_minute(database: Database) -> None:
    token = await create(database, "agent", "d1")
    for later, noted in ((0, 0), (MINUTE - 1, 0), (MINUTE, MINUTE), (MINUTE + 5, MINUTE)):
        now = NOON + later
        await database.write(lambda tx, now=now: tokens.record_token_use(tx, token.id, now))  # type: ignore[misc]
        database.refresh()
        found = await tokens.find_token(database, "d1")
        assert found is not None
        assert found.last_used_at == NOON + noted
