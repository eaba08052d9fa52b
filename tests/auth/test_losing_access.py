"""What becomes of what is a person's when the account ends or its role changes."""

import asyncio
from typing import Any

import pytest

from factbook.auth import invitations, permissions, sessions, users
from factbook.storage import Database, Transaction
from tests.auth.accounts import (
    KIM,
    LOU,
    READ,
    RUN,
    add,
    add_invitation,
    add_session,
    add_token,
    change_role,
    disable,
    grant,
    invited,
)
from tests.service import NOON


@pytest.mark.spec("token.dies-with-the-account")
async def test_tokens_and_sessions_end_with_the_account_for_good(database: Database) -> None:
    await add(database)
    await add(database, LOU)
    for digest, owner in (("t1", KIM), ("t2", KIM), ("t3", LOU)):
        await add_token(database, digest, owner)
        await add_session(database, digest, owner)
    await disable(database, KIM)
    assert [(await grant(database, one)).revoked_at for one in ("t1", "t2", "t3")] == [
        NOON + 1,
        NOON + 1,
        None,
    ]
    assert await sessions.list_sessions(database, KIM) == []
    assert len(await sessions.list_sessions(database, LOU)) == 1
    await database.write(lambda tx: users.enable_user(tx, KIM))
    assert (await grant(database, "t1")).revoked_at == NOON + 1
    assert await sessions.list_sessions(database, KIM) == []


async def test_a_token_loses_what_its_owners_new_role_lacks(database: Database) -> None:
    await add(database)
    await add(database, LOU)
    await add_token(database, "all", may=permissions.PERMISSION_NAMES)
    await add_token(database, "read", may=READ)
    await add_token(database, "both", may=READ | RUN)
    await add_token(database, "run", may=RUN)
    await add_token(database, "other", LOU, may=permissions.PERMISSION_NAMES)
    await change_role(database, KIM, permissions.VIEWER)
    assert (await grant(database, "all")).permissions == permissions.ROLES[permissions.VIEWER]
    for digest in ("read", "both"):
        assert (await grant(database, digest)).permissions == READ
        assert (await grant(database, digest)).revoked_at is None
    assert (await grant(database, "run")).revoked_at == NOON + 1
    assert (await grant(database, "other")).permissions == permissions.PERMISSION_NAMES
    await change_role(database, KIM, permissions.ADMINISTRATOR)
    assert (await grant(database, "both")).permissions == READ
    assert (await grant(database, "run")).revoked_at == NOON + 1


@pytest.mark.parametrize(
    "lose", [disable, lambda db, ref: change_role(db, ref, permissions.VIEWER)]
)
async def test_who_is_no_administrator_any_more_has_invited_nobody(
    database: Database, lose: Any
) -> None:
    await add(database)
    await add(database, LOU)
    await add_invitation(database, "d1", made_by=KIM, role=permissions.ADMINISTRATOR)
    await add_invitation(database, "d2", made_by=LOU)
    await lose(database, KIM)
    assert await invited(database) == ["d2"]


async def test_a_disabled_person_cannot_set_a_password_by_an_earlier_link(
    database: Database,
) -> None:
    await add(database)
    await add(database, LOU)
    await add_invitation(database, "d1", made_by=LOU, ref=KIM)
    await disable(database, KIM)
    assert await invited(database) == []


async def test_what_a_person_may_do_is_asked_in_the_transaction_that_makes_a_token(
    database: Database,
) -> None:
    async def may(ref: str) -> frozenset[str] | None:
        return await database.write(lambda tx: users.get_user_permissions(tx, ref))

    await add(database)
    await add(database, LOU, role=permissions.VIEWER)
    assert await may(KIM) == permissions.PERMISSION_NAMES
    assert await may(LOU) == permissions.ROLES[permissions.VIEWER]
    await disable(database, LOU)
    assert await may(LOU) == frozenset()
    assert await may("user:default/a-machine") is None


async def test_a_link_that_is_used_while_the_person_is_disabled_leaves_no_way_in(
    database: Database,
) -> None:
    await add(database)
    await add(database, LOU)
    await add_invitation(database, "d1", ref=KIM)

    def use(tx: Transaction) -> None:
        invitations.use_up_invitation(tx, "d1", NOON)
        users.set_password(tx, KIM, "new")
        users.record_sign_in(tx, KIM, NOON)
        sessions.start_session(tx, hash="s1", ref=KIM, now=NOON, address="", agent="")

    await asyncio.gather(database.write(use), disable(database, KIM), return_exceptions=True)
    assert await sessions.list_sessions(database, KIM) == []
    kim = await users.find_user(database, KIM)
    assert kim is not None
    assert kim.disabled_at == NOON + 1
