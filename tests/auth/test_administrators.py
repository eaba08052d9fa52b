"""The last administrator stays one."""

import asyncio
from typing import Any

import pytest

from factbook.auth import permissions, sessions, users
from factbook.errors import ConflictError
from factbook.storage import Database
from tests.auth.accounts import KIM, LOU, add, add_session, change_role, disable


@pytest.mark.parametrize(
    "lose", [disable, lambda db, ref: change_role(db, ref, permissions.VIEWER)]
)
async def test_the_last_enabled_administrator_stays_one(database: Database, lose: Any) -> None:
    made = await add(database)
    await add(database, LOU, role=permissions.VIEWER)
    await add(database, "user:default/max")
    await disable(database, "user:default/max")
    await add_session(database, "s1")
    with pytest.raises(ConflictError, match="the only administrator; give someone else the role"):
        await lose(database, KIM)
    assert await users.find_user(database, KIM) == made
    assert len(await sessions.list_sessions(database, KIM)) == 1
    await change_role(database, KIM, permissions.ADMINISTRATOR)
    await change_role(database, LOU, permissions.ADMINISTRATOR)
    await lose(database, KIM)
    assert await users.find_user(database, KIM) != made


@pytest.mark.parametrize(
    "lose", [disable, lambda db, ref: change_role(db, ref, permissions.VIEWER)]
)
async def test_of_the_last_two_administrators_who_go_at_once_one_stays(
    database: Database, lose: Any
) -> None:
    await add(database)
    await add(database, LOU)
    found = await asyncio.gather(lose(database, KIM), lose(database, LOU), return_exceptions=True)
    assert sum(isinstance(one, ConflictError) for one in found) == 1
    assert found.count(None) == 1
    left = [one for one in await users.list_users(database) if one.disabled_at is None]
    assert [one.role for one in left].count(permissions.ADMINISTRATOR) == 1
