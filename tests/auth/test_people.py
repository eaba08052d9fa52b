"""People in the database: their names, how they are found, and what of them changes."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from factbook.auth import permissions, sessions, users
from factbook.auth.users import Person
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.storage import Database, Transaction
from tests.auth.accounts import (
    KIM,
    LOU,
    add,
    add_invitation,
    add_session,
    add_token,
    disable,
    grant,
    invited,
)
from tests.service import NOON

# Names


def test_a_name_to_sign_in_with_has_one_reference(subtests: pytest.Subtests) -> None:
    for name, ref in [
        ("kim", "user:default/kim"),
        ("Kim.K-2_x", "user:default/kim.k-2_x"),
        ("7", "user:default/7"),
        ("a" * 63, "user:default/" + "a" * 63),
    ]:
        with subtests.test(name=name, ref=ref):
            assert users.make_user_ref(name) == ref


def test_what_is_no_name_is_refused_in_a_sentence(subtests: pytest.Subtests) -> None:
    for name in [
        "",
        "a" * 64,
        "kim ",
        "-kim",
        "kim.",
        "k/m",
        "k:m",
        "kim\n",
        "kïm",
        "user:default/kim",
        "k m",
    ]:
        with (
            subtests.test(name=name),
            pytest.raises(InputError, match="A name has 1 to 63 characters"),
        ):
            users.make_user_ref(name)


# Finding


async def test_a_person_is_found_as_created(database: Database) -> None:
    assert not await users.has_users(database)
    made = await add(database, password="a hash", display_name=" Kim K. ")
    assert made == Person(
        KIM, "Kim K.", "administrator", True, None, None, "test", NOON, None, None
    )
    assert await users.find_user(database, KIM) == made
    assert made.name == "kim"
    assert made.permissions == permissions.PERMISSION_NAMES
    assert await users.has_users(database)
    assert await users.get_password_hash(database, KIM) == "a hash"
    for ref in (LOU, "", "kim", "user:default/KIM"):
        assert await users.find_user(database, ref) is None
        assert await users.get_password_hash(database, ref) is None


async def test_everyone_is_listed_in_the_order_of_references(database: Database) -> None:
    lou = await add(database, LOU, role=permissions.VIEWER)
    kim = await add(database)
    assert await users.list_users(database) == [kim, lou]
    assert lou.permissions == permissions.ROLES[permissions.VIEWER]


async def test_a_person_of_a_provider_is_found_by_issuer_and_subject(database: Database) -> None:
    one, two = "https://one.example", "https://two.example"
    kim = await add(database, issuer=one, subject="7")
    lou = await add(database, LOU, issuer=two, subject="7")
    await add(database, "user:default/max")
    assert await users.find_user_by_subject(database, one, "7") == kim
    assert await users.find_user_by_subject(database, two, "7") == lou
    assert await users.find_user_by_subject(database, one, "8") is None
    assert not kim.has_password
    assert await users.get_password_hash(database, KIM) is None


async def test_a_reference_is_one_persons(database: Database) -> None:
    kim = await add(database)
    with pytest.raises(ConflictError, match="There is already a person user:default/kim"):
        await add(database, display_name="Another")
    assert await users.list_users(database) == [kim]


async def test_an_account_of_a_provider_is_one_persons(database: Database) -> None:
    await add(database, issuer="https://one.example", subject="7")
    with pytest.raises(ConflictError, match="already belongs to someone"):
        await add(database, LOU, issuer="https://one.example", subject="7")


async def test_of_those_who_choose_a_name_at_once_one_gets_it(database: Database) -> None:
    found = await asyncio.gather(*(add(database) for _ in range(4)), return_exceptions=True)
    assert sum(isinstance(one, Person) for one in found) == 1
    assert sum(isinstance(one, ConflictError) for one in found) == 3


async def test_what_cannot_be_shown_is_no_display_name(
    database: Database, subtests: pytest.Subtests
) -> None:
    kim = await add(database)
    for name in ["", " ", "x" * 201, "a\nb", "a\0b", "\ud800"]:
        with subtests.test(name=name):
            with pytest.raises(InputError, match="A display name has"):
                await add(database, LOU, display_name=name)
            with pytest.raises(InputError, match="A display name has"):
                await database.write(partial(users.rename_user, ref=KIM, display_name=name))
            assert await users.list_users(database) == [kim]


async def test_nothing_of_nobody_can_be_changed(
    database: Database, subtests: pytest.Subtests
) -> None:
    changes: dict[str, Callable[[Transaction], None]] = {
        "password": lambda tx: users.set_password(tx, KIM, "a hash"),
        "viewer": lambda tx: users.change_user_role(tx, KIM, permissions.VIEWER, NOON),
        "administrator": lambda tx: users.change_user_role(
            tx, KIM, permissions.ADMINISTRATOR, NOON
        ),
        "disable": lambda tx: users.disable_user(tx, KIM, NOON),
        "enable": lambda tx: users.enable_user(tx, KIM),
        "rename": lambda tx: users.rename_user(tx, KIM, "Kim"),
        "sign-in": lambda tx: users.record_sign_in(tx, KIM, NOON),
    }
    for name, change in changes.items():
        with (
            subtests.test(name),
            pytest.raises(NotFoundError, match="There is no person user:default/kim"),
        ):
            await database.write(change)


# Changing


async def test_a_new_password_ends_sessions_and_links_to_set_it(database: Database) -> None:
    await add(database, password="old")
    for hash_, ref in (("s1", KIM), ("s2", KIM), ("s3", LOU)):
        await add_session(database, hash_, ref)
    await add_invitation(database, "d1", ref=KIM)
    await add_invitation(database, "d2", ref=LOU)
    await add_token(database, "t1")
    await database.write(lambda tx: users.set_password(tx, KIM, "new"))
    assert await users.get_password_hash(database, KIM) == "new"
    assert await sessions.list_sessions(database, KIM) == []
    assert len(await sessions.list_sessions(database, LOU)) == 1
    assert await invited(database) == ["d2"]
    assert (await grant(database, "t1")).revoked_at is None


async def test_another_hash_of_the_same_password_ends_nothing(database: Database) -> None:
    await add(database, password="old")
    await add_session(database, "s1")
    await database.write(lambda tx: users.store_password_hash(tx, KIM, "new"))
    assert await users.get_password_hash(database, KIM) == "new"
    assert len(await sessions.list_sessions(database, KIM)) == 1


async def test_a_sign_in_is_noted(database: Database) -> None:
    made = await add(database)
    await database.write(lambda tx: users.record_sign_in(tx, KIM, NOON + 7))
    assert await users.find_user(database, KIM) == made._replace(signed_in_at=NOON + 7)


async def test_a_disabled_person_cannot_sign_in_until_enabled(database: Database) -> None:
    await add(database, LOU)
    made = await add(database)
    await disable(database, KIM)
    assert await users.find_user(database, KIM) == made._replace(disabled_at=NOON + 1)
    with pytest.raises(NotFoundError):
        await database.write(lambda tx: users.record_sign_in(tx, KIM, NOON + 7))
    await database.write(lambda tx: users.disable_user(tx, KIM, NOON + 2))
    assert await users.find_user(database, KIM) == made._replace(disabled_at=NOON + 1)
    await database.write(lambda tx: users.enable_user(tx, KIM))
    assert await users.find_user(database, KIM) == made
