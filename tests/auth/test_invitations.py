"""Invitations in the database."""

import asyncio
from typing import Any

import pytest

from factbook.auth import invitations, permissions, users
from factbook.auth.invitations import Invitation
from factbook.clock import DAY
from factbook.errors import InputError, NotFoundError
from factbook.settings import Settings
from factbook.storage import Database
from factbook.worker import sweep
from tests.service import NOON

KIM = "user:default/kim"


async def make(database: Database, digest: str, **given: Any) -> Invitation:
    """An invitation of an administrator's for a day."""
    wanted = {"role": permissions.VIEWER, "made_by": KIM, "now": NOON, "lifetime": DAY, **given}
    return await database.write(
        lambda tx: invitations.create_invitation(tx, digest=digest, **wanted)
    )


async def take(database: Database, digest: str, now: int = NOON) -> Invitation:
    return await database.write(lambda tx: invitations.use_up_invitation(tx, digest, now))


async def replace_first(database: Database, digest: str) -> bool:
    return await database.write(
        lambda tx: invitations.replace_first_invitation(tx, digest, NOON, DAY)
    )


async def add_kim(database: Database) -> None:
    def add(tx: Any) -> None:
        users.create_user(
            tx, ref=KIM, display_name="Kim", role="administrator", created_by="test", now=NOON
        )

    await database.write(add)


def test_secrets_differ_and_their_hashes_depend_on_the_key() -> None:
    one, two = invitations.generate_invitation_secret(), invitations.generate_invitation_secret()
    assert one != two
    assert len(one) >= 43
    hashes = {
        invitations.hash_invitation_secret(value, key)
        for value in (one, two)
        for key in (b"k", b"K")
    }
    assert len(hashes) == 4
    assert not any(one in hash_ for hash_ in hashes)


async def test_an_invitation_is_found_by_its_hash_until_it_ends(database: Database) -> None:
    made = await make(database, "d1" * 32)
    assert made == Invitation("d1" * 8, None, "viewer", KIM, NOON, NOON + DAY)
    assert await invitations.find_invitation(database, "d1" * 32, NOON + DAY - 1) == made
    assert await invitations.find_invitation(database, "d1" * 32, NOON + DAY) is None
    for digest in ("d2", "", "D1" * 32, made.id):
        assert await invitations.find_invitation(database, digest, NOON) is None


async def test_an_invitation_works_once(database: Database) -> None:
    made = await make(database, "d1", role=permissions.ADMINISTRATOR)
    assert await take(database, "d1") == made
    assert await invitations.find_invitation(database, "d1", NOON) is None
    with pytest.raises(NotFoundError, match="been used or has expired"):
        await take(database, "d1")


async def test_an_invitation_that_has_ended_cannot_be_used(database: Database) -> None:
    await make(database, "d1")
    with pytest.raises(NotFoundError, match="been used or has expired"):
        await take(database, "d1", NOON + DAY)


async def test_of_those_who_use_an_invitation_at_once_one_gets_it(database: Database) -> None:
    made = await make(database, "d1")
    found = await asyncio.gather(*(take(database, "d1") for _ in range(4)), return_exceptions=True)
    assert found.count(made) == 1
    assert sum(isinstance(one, NotFoundError) for one in found) == 3


async def test_what_fails_after_taking_an_invitation_does_not_use_it_up(
    database: Database,
) -> None:
    made = await make(database, "d1")

    def fail(tx: Any) -> None:
        invitations.use_up_invitation(tx, "d1", NOON)
        raise InputError

    with pytest.raises(InputError):
        await database.write(fail)
    assert await take(database, "d1") == made


async def test_a_role_that_there_is_not_cannot_be_offered(database: Database) -> None:
    with pytest.raises(InputError, match="no role"):
        await make(database, "d1", role="owner")


async def test_a_new_link_to_set_a_password_ends_the_earlier_ones_of_that_person(
    database: Database,
) -> None:
    await make(database, "d1", ref=KIM)
    other = await make(database, "d2", ref="user:default/lou")
    new = await make(database, "d3", ref=KIM, now=NOON + 1)
    free = await make(database, "d4", now=NOON + 2)
    assert await invitations.list_invitations(database, NOON) == [free, new, other]


async def test_an_invitation_is_withdrawn_by_its_id(database: Database) -> None:
    gone, kept = await make(database, "d1" * 32), await make(database, "d2" * 32)
    await database.write(lambda tx: invitations.withdraw_invitation(tx, gone.id))
    assert await invitations.list_invitations(database, NOON) == [kept]
    with pytest.raises(NotFoundError):
        await database.write(lambda tx: invitations.withdraw_invitation(tx, gone.id))


async def test_each_first_start_replaces_the_link_for_the_first_administrator(
    database: Database,
) -> None:
    free = await make(database, "d0")
    assert await replace_first(database, "d1")
    assert await replace_first(database, "d2")
    assert await invitations.find_invitation(database, "d1", NOON) is None
    first = await invitations.find_invitation(database, "d2", NOON)
    assert first == Invitation("d2", None, "administrator", "first start", NOON, NOON + DAY)
    assert await invitations.list_invitations(database, NOON) == [free, first]


async def test_starting_several_at_once_leaves_one_link(database: Database) -> None:
    made = await asyncio.gather(*(replace_first(database, f"d{n}") for n in range(4)))
    assert made == [True] * 4
    assert len(await invitations.list_invitations(database, NOON)) == 1


async def test_with_the_first_person_there_is_no_link_for_the_first_any_more(
    database: Database,
) -> None:
    await replace_first(database, "d1")
    await add_kim(database)
    assert await invitations.find_invitation(database, "d1", NOON) is None
    assert not await replace_first(database, "d2")
    assert await invitations.list_invitations(database, NOON) == []


async def test_becoming_the_first_and_starting_anew_at_once_leave_no_link(
    database: Database,
) -> None:
    await replace_first(database, "d0")
    await asyncio.gather(
        add_kim(database), *(replace_first(database, f"d{n}") for n in range(1, 4))
    )
    assert await invitations.list_invitations(database, NOON) == []


async def test_housekeeping_forgets_what_has_ended(database: Database) -> None:
    await make(database, "d1", lifetime=5)
    kept = await make(database, "d2", lifetime=6)
    await sweep(database, Settings(), (), NOON + 5)
    assert await invitations.list_invitations(database, NOON) == [kept]
