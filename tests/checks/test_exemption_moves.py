"""Exemptions of what gets another name: they stay with the entity."""

import asyncio
from typing import Any

import pytest

from factbook.checks import state
from factbook.checks.definitions import exemption_store
from factbook.checks.definitions.exemption_store import (
    Exemption,
    ExemptionActor,
    ExemptionFilter,
    ExemptionRequest,
)
from factbook.clock import DAY
from factbook.errors import NotFoundError
from factbook.importers.snapshot import ImportedItem
from factbook.storage import Database
from tests.checks.catalog import CheckedCatalog, a_check, leaf
from tests.importers.reading import Imports, item, part
from tests.service import NOON, Time
from tests.storage.evaluating import evaluating

ANN = ExemptionActor("user:default/ann", may_decide=True)
BOB = ExemptionActor("user:default/bob", may_decide=True)


@pytest.fixture
async def catalog(database: Database) -> CheckedCatalog:
    return CheckedCatalog(database, Time())


@pytest.fixture
async def imports(catalog: CheckedCatalog) -> Imports:
    found = Imports(catalog.database)
    await found.write(part(thing(1, "old"), thing(2, "other")))
    await catalog.publish(a_check("slo", leaf("open", "lessThan", 1)))
    for name in ("old", "other"):
        await catalog.record(name, open=5)
    return found


def thing(number: int, name: str) -> ImportedItem:
    return item(name, origin=f"repository {number}", external_id=f"repository/{number}")


def ref(name: str) -> str:
    return f"component:default/{name}"


async def asked(database: Database, name: str, **members: Any) -> Exemption:
    wanted = ExemptionRequest("slo", None, ref(name), "Frozen", NOON, NOON + DAY)
    wanted = wanted._replace(**members)
    return await database.write(lambda tx: exemption_store.store_request(tx, wanted, [], ANN, NOON))


async def decided(database: Database, one: Exemption, what: Any) -> Exemption:
    return await database.write(
        evaluating(lambda tx: exemption_store.store_decision(tx, one.id, what, [], BOB, NOON))
    )


async def exempt(database: Database) -> set[str]:
    """The names of the entities that are exempt from the check."""
    rows = await database.all(
        "SELECT e.name, s.states FROM check_states s JOIN entities e ON e.id = s.entity_id"
    )
    return {name for name, states in rows if bytes(states)[-1] & state.EXEMPT}


async def named(database: Database) -> list[str]:
    found = await exemption_store.list_exemptions(database, ExemptionFilter(), 9)
    return [one.entity for one in found]


async def test_an_exemption_stays_with_what_gets_another_name(
    database: Database, imports: Imports
) -> None:
    made = await asked(database, "old")
    await decided(database, made, "approve")
    assert await exempt(database) == {"old"}
    for name in ("new", "newer"):
        await imports.write(part(thing(1, name), thing(2, "other")))
        assert await exempt(database) == {name}
        assert await named(database) == [ref(name)]
    await decided(database, made, "revoke")
    assert await exempt(database) == set()


async def test_a_request_is_decided_for_what_has_another_name_by_then(
    database: Database, imports: Imports
) -> None:
    made = await asked(database, "old")
    await imports.write(part(thing(1, "new"), thing(2, "other")))
    assert (await decided(database, made, "approve")).entity == ref("new")
    assert await exempt(database) == {"new"}


@pytest.mark.both_databases
async def test_many_that_get_other_names_keep_each_its_own(
    database: Database, imports: Imports
) -> None:
    await imports.write(part(*(thing(n, f"a{n}") for n in range(3, 30))))
    for n in range(3, 30, 2):
        await decided(database, await asked(database, f"a{n}"), "approve")
    await imports.write(part(*(thing(n, f"b{n}") for n in range(3, 30))))
    assert await exempt(database) == {f"b{n}" for n in range(3, 30, 2)}


async def test_an_exemption_of_what_is_removed_goes_to_nothing_else(
    database: Database, imports: Imports
) -> None:
    await decided(database, await asked(database, "old"), "approve")
    await imports.write(part(thing(2, "other")))
    await imports.write(part(thing(2, "other"), thing(3, "new")))
    assert await exempt(database) == set()
    assert await named(database) == [ref("old")]


@pytest.mark.both_databases
@pytest.mark.slow
@pytest.mark.parametrize("what", ["approve", "revoke"])
async def test_decisions_and_requests_while_a_name_changes_count_for_the_new_one(
    database: Database, imports: Imports, what: str
) -> None:
    first = await asked(database, "old", check="another")
    kept = await asked(database, "old")
    if what == "revoke":
        await decided(database, kept, "approve")
    outcome, _, _ = await asyncio.gather(
        asked(database, "old", check="third"),
        imports.write(part(thing(1, "new"), thing(2, "other"))),
        decided(database, kept, what),
        return_exceptions=True,
    )
    assert isinstance(outcome, Exemption | NotFoundError)
    count = 2 + isinstance(outcome, Exemption)
    assert await named(database) == [ref("new")] * count
    assert await exempt(database) == ({"new"} if what == "approve" else set())
    assert (await exemption_store.get_exemption(database, first.id)).state == "requested"
