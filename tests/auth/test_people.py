"""People in the database, and what becomes of what is theirs."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from factbook.auth import invitations, people, permissions, roles, sessions, store
from factbook.auth.people import Person
from factbook.clock import DAY
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.storage import Database, Transaction
from tests.service import NOON

KIM = "user:default/kim"
LOU = "user:default/lou"
READ = frozenset({permissions.CATALOG_READ})
RUN = frozenset({permissions.SOURCE_RUN})


async def add(database: Database, ref: str = KIM, **given: Any) -> Person:
    """A new person, an administrator."""
    wanted = {
        "display_name": "Kim",
        "role": roles.ADMINISTRATOR,
        "created_by": "test",
        "now": NOON,
        **given,
    }
    return await database.write(lambda tx: people.create(tx, ref=ref, **wanted))


async def add_token(
    database: Database, digest: str, owner: str = KIM, may: frozenset[str] = READ
) -> None:
    await database.write(
        lambda tx: store.create(
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
        lambda tx: sessions.start(
            tx, hash=hash_, ref=ref, now=NOON, lifetime=DAY, address="", agent=""
        )
    )


async def add_invitation(database: Database, digest: str, **given: Any) -> None:
    wanted = {"role": roles.VIEWER, "made_by": LOU, "now": NOON, "lifetime": DAY, **given}
    await database.write(lambda tx: invitations.make(tx, digest=digest, **wanted))


async def grant(database: Database, digest: str) -> store.Grant:
    database.refresh()
    found = await store.find(database, digest)
    assert found is not None
    return found


async def change_role(database: Database, ref: str, role: str) -> None:
    await database.write(lambda tx: people.change_role(tx, ref, role, NOON + 1))


async def disable(database: Database, ref: str) -> None:
    await database.write(lambda tx: people.disable(tx, ref, NOON + 1))


async def invited(database: Database) -> list[str]:
    return [one.id for one in await invitations.listed(database, NOON)]


# Names


@pytest.mark.parametrize(
    ("name", "ref"),
    [
        ("kim", "user:default/kim"),
        ("Kim.K-2_x", "user:default/kim.k-2_x"),
        ("7", "user:default/7"),
        ("a" * 63, "user:default/" + "a" * 63),
    ],
)
def test_a_name_to_sign_in_with_has_one_reference(name: str, ref: str) -> None:
    assert people.reference(name) == ref


@pytest.mark.parametrize(
    "name",
    ["", "a" * 64, "kim ", "-kim", "kim.", "k/m", "k:m", "kim\n", "kïm", "user:default/kim", "k m"],
)
def test_what_is_no_name_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(InputError, match="A name has 1 to 63 characters"):
        people.reference(name)


# Finding


async def test_a_person_is_found_as_created(database: Database) -> None:
    assert not await people.any_there(database)
    made = await add(database, password="a hash", display_name=" Kim K. ")
    assert made == Person(
        KIM, "Kim K.", "administrator", True, None, None, "test", NOON, None, None
    )
    assert await people.find(database, KIM) == made
    assert made.name == "kim"
    assert made.permissions == permissions.NAMES
    assert await people.any_there(database)
    assert await people.password_of(database, KIM) == "a hash"
    for ref in (LOU, "", "kim", "user:default/KIM"):
        assert await people.find(database, ref) is None
        assert await people.password_of(database, ref) is None


async def test_everyone_is_listed_in_the_order_of_references(database: Database) -> None:
    lou = await add(database, LOU, role=roles.VIEWER)
    kim = await add(database)
    assert await people.listed(database) == [kim, lou]
    assert lou.permissions == roles.ROLES[roles.VIEWER]


async def test_a_person_of_a_provider_is_found_by_issuer_and_subject(database: Database) -> None:
    one, two = "https://one.example", "https://two.example"
    kim = await add(database, issuer=one, subject="7")
    lou = await add(database, LOU, issuer=two, subject="7")
    await add(database, "user:default/max")
    assert await people.find_by_subject(database, one, "7") == kim
    assert await people.find_by_subject(database, two, "7") == lou
    assert await people.find_by_subject(database, one, "8") is None
    assert not kim.has_password
    assert await people.password_of(database, KIM) is None


async def test_a_reference_is_one_persons(database: Database) -> None:
    kim = await add(database)
    with pytest.raises(ConflictError, match="There is a person user:default/kim already"):
        await add(database, display_name="Another")
    assert await people.listed(database) == [kim]


async def test_an_account_of_a_provider_is_one_persons(database: Database) -> None:
    await add(database, issuer="https://one.example", subject="7")
    with pytest.raises(ConflictError, match="belongs to somebody already"):
        await add(database, LOU, issuer="https://one.example", subject="7")


async def test_of_those_who_choose_a_name_at_once_one_gets_it(database: Database) -> None:
    found = await asyncio.gather(*(add(database) for _ in range(4)), return_exceptions=True)
    assert sum(isinstance(one, Person) for one in found) == 1
    assert sum(isinstance(one, ConflictError) for one in found) == 3


@pytest.mark.parametrize("shown", ["", " ", "x" * 201, "a\nb", "a\0b", "\ud800"])
async def test_what_cannot_be_shown_is_no_display_name(database: Database, shown: str) -> None:
    with pytest.raises(InputError, match="A display name has"):
        await add(database, display_name=shown)
    kim = await add(database)
    with pytest.raises(InputError, match="A display name has"):
        await database.write(lambda tx: people.rename(tx, KIM, shown))
    assert await people.find(database, KIM) == kim


@pytest.mark.parametrize(
    "change",
    [
        lambda tx: people.set_password(tx, KIM, "a hash"),
        lambda tx: people.change_role(tx, KIM, roles.VIEWER, NOON),
        lambda tx: people.change_role(tx, KIM, roles.ADMINISTRATOR, NOON),
        lambda tx: people.disable(tx, KIM, NOON),
        lambda tx: people.enable(tx, KIM),
        lambda tx: people.rename(tx, KIM, "Kim"),
        lambda tx: people.signed_in(tx, KIM, NOON),
    ],
)
async def test_nothing_of_nobody_can_be_changed(
    database: Database, change: Callable[[Transaction], None]
) -> None:
    with pytest.raises(NotFoundError, match="There is no person user:default/kim"):
        await database.write(change)


# Changing


async def test_a_new_password_ends_sessions_and_links_to_set_it(database: Database) -> None:
    await add(database, password="old")
    for hash_, ref in (("s1", KIM), ("s2", KIM), ("s3", LOU)):
        await add_session(database, hash_, ref)
    await add_invitation(database, "d1", ref=KIM)
    await add_invitation(database, "d2", ref=LOU)
    await add_token(database, "t1")
    await database.write(lambda tx: people.set_password(tx, KIM, "new"))
    assert await people.password_of(database, KIM) == "new"
    assert await sessions.listed(database, KIM) == []
    assert len(await sessions.listed(database, LOU)) == 1
    assert await invited(database) == ["d2"]
    assert (await grant(database, "t1")).revoked_at is None


async def test_another_hash_of_the_same_password_ends_nothing(database: Database) -> None:
    await add(database, password="old")
    await add_session(database, "s1")
    await database.write(lambda tx: people.rehash(tx, KIM, "new"))
    assert await people.password_of(database, KIM) == "new"
    assert len(await sessions.listed(database, KIM)) == 1


async def test_a_sign_in_is_noted(database: Database) -> None:
    made = await add(database)
    await database.write(lambda tx: people.signed_in(tx, KIM, NOON + 7))
    assert await people.find(database, KIM) == made._replace(signed_in_at=NOON + 7)


async def test_a_disabled_person_cannot_sign_in_until_enabled(database: Database) -> None:
    await add(database, LOU)
    made = await add(database)
    await disable(database, KIM)
    assert await people.find(database, KIM) == made._replace(disabled_at=NOON + 1)
    with pytest.raises(NotFoundError):
        await database.write(lambda tx: people.signed_in(tx, KIM, NOON + 7))
    await database.write(lambda tx: people.disable(tx, KIM, NOON + 2))
    assert await people.find(database, KIM) == made._replace(disabled_at=NOON + 1)
    await database.write(lambda tx: people.enable(tx, KIM))
    assert await people.find(database, KIM) == made


# The last administrator


@pytest.mark.parametrize("lose", [disable, lambda db, ref: change_role(db, ref, roles.VIEWER)])
async def test_the_last_enabled_administrator_stays_one(database: Database, lose: Any) -> None:
    made = await add(database)
    await add(database, LOU, role=roles.VIEWER)
    await add(database, "user:default/max")
    await disable(database, "user:default/max")
    await add_session(database, "s1")
    with pytest.raises(ConflictError, match="the only administrator; make somebody else one"):
        await lose(database, KIM)
    assert await people.find(database, KIM) == made
    assert len(await sessions.listed(database, KIM)) == 1
    await change_role(database, KIM, roles.ADMINISTRATOR)
    await change_role(database, LOU, roles.ADMINISTRATOR)
    await lose(database, KIM)
    assert await people.find(database, KIM) != made


@pytest.mark.parametrize("lose", [disable, lambda db, ref: change_role(db, ref, roles.VIEWER)])
async def test_of_the_last_two_administrators_who_go_at_once_one_stays(
    database: Database, lose: Any
) -> None:
    await add(database)
    await add(database, LOU)
    found = await asyncio.gather(lose(database, KIM), lose(database, LOU), return_exceptions=True)
    assert sum(isinstance(one, ConflictError) for one in found) == 1
    assert found.count(None) == 1
    left = [one for one in await people.listed(database) if one.disabled_at is None]
    assert [one.role for one in left].count(roles.ADMINISTRATOR) == 1


# What is theirs


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
    assert await sessions.listed(database, KIM) == []
    assert len(await sessions.listed(database, LOU)) == 1
    await database.write(lambda tx: people.enable(tx, KIM))
    assert (await grant(database, "t1")).revoked_at == NOON + 1
    assert await sessions.listed(database, KIM) == []


async def test_a_token_loses_what_its_owners_new_role_lacks(database: Database) -> None:
    await add(database)
    await add(database, LOU)
    await add_token(database, "all", may=permissions.NAMES)
    await add_token(database, "read", may=READ)
    await add_token(database, "both", may=READ | RUN)
    await add_token(database, "run", may=RUN)
    await add_token(database, "other", LOU, may=permissions.NAMES)
    await change_role(database, KIM, roles.VIEWER)
    assert (await grant(database, "all")).permissions == roles.ROLES[roles.VIEWER]
    for digest in ("read", "both"):
        assert (await grant(database, digest)).permissions == READ
        assert (await grant(database, digest)).revoked_at is None
    assert (await grant(database, "run")).revoked_at == NOON + 1
    assert (await grant(database, "other")).permissions == permissions.NAMES
    await change_role(database, KIM, roles.ADMINISTRATOR)
    assert (await grant(database, "both")).permissions == READ
    assert (await grant(database, "run")).revoked_at == NOON + 1


@pytest.mark.parametrize("lose", [disable, lambda db, ref: change_role(db, ref, roles.VIEWER)])
async def test_who_is_no_administrator_any_more_has_invited_nobody(
    database: Database, lose: Any
) -> None:
    await add(database)
    await add(database, LOU)
    await add_invitation(database, "d1", made_by=KIM, role=roles.ADMINISTRATOR)
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
        return await database.write(lambda tx: people.permissions_of(tx, ref))

    await add(database)
    await add(database, LOU, role=roles.VIEWER)
    assert await may(KIM) == permissions.NAMES
    assert await may(LOU) == roles.ROLES[roles.VIEWER]
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
        invitations.take(tx, "d1", NOON)
        people.set_password(tx, KIM, "new")
        people.signed_in(tx, KIM, NOON)
        sessions.start(tx, hash="s1", ref=KIM, now=NOON, address="", agent="")

    await asyncio.gather(database.write(use), disable(database, KIM), return_exceptions=True)
    assert await sessions.listed(database, KIM) == []
    kim = await people.find(database, KIM)
    assert kim is not None
    assert kim.disabled_at == NOON + 1
