"""The rules of making and revoking tokens, which every interface shares."""

from functools import partial
from typing import Any

import pytest

from factbook.auth import token_rules, tokens, users
from factbook.auth.permissions import CATALOG_READ, PERMISSION_NAMES, SET_WRITE, SOURCE_READ
from factbook.auth.token_rules import TokenRequest
from factbook.auth.tokens import StoredToken
from factbook.errors import ConflictError, NotAllowedError, NotFoundError
from factbook.storage import Database
from tests.service import NOON

VIC = "user:default/vic"


async def add_viewer(database: Database) -> None:
    await database.write(
        lambda tx: users.create_user(
            tx, ref=VIC, display_name="Vic", role="viewer", created_by="test", now=NOON
        )
    )


async def make(database: Database, *permissions: str, **given: Any) -> StoredToken:
    wish = TokenRequest(given.pop("name", "ci"), frozenset(permissions), None)
    digest = str(len(await tokens.list_tokens(database)))
    fields: dict[str, Any] = {"digest": digest, "owner": VIC, "held": PERMISSION_NAMES}
    fields |= {"created_by": "test", "now": NOON, **given}
    return await database.write(lambda tx: token_rules.make_token(tx, wish, **fields))


@pytest.mark.spec("token.never-exceeds-its-creator")
async def test_a_token_never_exceeds_who_makes_it_nor_its_owner(database: Database) -> None:
    await add_viewer(database)
    with pytest.raises(NotAllowedError, match=SET_WRITE):
        await make(database, CATALOG_READ, SET_WRITE)
    with pytest.raises(NotAllowedError, match=SOURCE_READ):
        await make(database, CATALOG_READ, SOURCE_READ, held=frozenset({CATALOG_READ}))
    made = await make(database, CATALOG_READ, SOURCE_READ)
    assert made.permissions == {CATALOG_READ, SOURCE_READ}
    assert [one.id for one in await tokens.list_tokens(database)] == [made.id]


async def test_the_owner_may_be_a_machine_that_has_no_account(database: Database) -> None:
    made = await make(database, SET_WRITE, owner="user:default/cron")
    assert made.owner == "user:default/cron"


async def test_a_disabled_person_gets_no_token(database: Database) -> None:
    await add_viewer(database)
    await database.write(
        lambda tx: users.create_user(
            tx, ref="user:default/a", display_name="A", role="administrator", created_by="", now=1
        )
    )
    await database.write(lambda tx: users.disable_user(tx, VIC, NOON))
    with pytest.raises(NotAllowedError):
        await make(database, CATALOG_READ)


async def test_one_form_of_one_person_is_one_token(database: Database) -> None:
    key = b"k" * 64
    id_ = token_rules.derive_token_id("form", VIC, key)
    assert id_ == token_rules.derive_token_id("form", VIC, key)
    others = {
        token_rules.derive_token_id("form", "user:default/lou", key),
        token_rules.derive_token_id("another", VIC, key),
        token_rules.derive_token_id("form", VIC, b"l" * 64),
    }
    assert len({id_, *others}) == 4
    assert (await make(database, CATALOG_READ, id=id_)).id == id_
    with pytest.raises(ConflictError):
        await make(database, CATALOG_READ, id=id_)
    await database.write(lambda tx: tokens.revoke_token(tx, id_, NOON))
    with pytest.raises(ConflictError):
        await make(database, CATALOG_READ, id=id_)


async def test_a_token_is_revoked_by_its_id_and_by_its_owner_alone(database: Database) -> None:
    made = await make(database, CATALOG_READ, name="ci")
    for id_, owner in (("ci", VIC), (made.id, "user:default/lou"), ("none", None), ("ci", None)):
        with pytest.raises(NotFoundError):
            await database.write(
                partial(token_rules.revoke_owned_token, id_=id_, owner=owner, now=NOON)
            )
    assert await tokens.list_tokens(database) != []
    await database.write(lambda tx: token_rules.revoke_owned_token(tx, made.id, VIC, NOON))
    assert await tokens.list_tokens(database) == []
