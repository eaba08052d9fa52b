"""Findings of the doctor about accounts that nothing proves to be somebody's."""

from typing import Any

from factbook.auth import users
from factbook.storage import Database
from tests.conftest import StartService
from tests.operations.doctor.conftest import Look, of
from tests.scim.provisioning import Provider, person
from tests.web.visiting import add_person

GROUP_ROLES = {"administrator": ["platform"]}


async def test_accounts_that_lose_a_role_or_have_somebodys_name_are_listed_until_confirmed(
    start: StartService, look: Look
) -> None:
    service = await start(group_roles=GROUP_ROLES)
    database: Database = service.state.database
    provider = await Provider.at(service)
    for name in ("kim", "lou", "mia", "pat"):
        await add_person(service, name, "viewer")
    await service.push("people", person("lou"), person("mia"), person("pat"))
    await provider.group("platform", await provider.user("kim"))

    def work(tx: Any) -> None:
        tx.run("UPDATE people SET proof = NULL WHERE ref = 'user:default/lou'")
        tx.run("UPDATE people SET proof = '' WHERE ref = 'user:default/mia'")

    await database.write(work)
    told = [what for _, what in of(await look(quick=True, group_roles=GROUP_ROLES), "people")]
    assert told == [
        "user:default/kim does not get the role administrator of the group platform: nothing "
        "proves that the account belongs to the SCIM user kim.",
        "These accounts have the name of a user in the catalog, and not the user's groups: mia.",
        "These accounts keep the groups of the user in the catalog whose name they have, though "
        "nobody has confirmed them: lou.",
    ]
    await database.write(lambda tx: tx.run("UPDATE people SET proof = 'administrator'"))
    [left] = of(await look(quick=True, group_roles=GROUP_ROLES), "people")
    assert "kim does not get the role" in left[1]
    kim, by = "user:default/kim", "user:default/ada"
    [user] = (await provider.http.get("/scim/v2/Users")).json()["Resources"]
    await database.write(lambda tx: users.link_account(tx, user["id"], kim, by, 0))
    assert of(await look(quick=True, group_roles=GROUP_ROLES), "people") == []


async def test_a_database_of_an_earlier_release_is_examined_before_its_upgrade(
    start: StartService, look: Look
) -> None:
    service = await start()
    await add_person(service, "kim", "viewer")

    def work(tx: Any) -> None:
        tx.run("DELETE FROM schema_migrations WHERE name LIKE '0043%'")
        tx.run("ALTER TABLE people DROP COLUMN proof")

    await service.state.database.write(work)
    found = await look(quick=True)
    assert [one.topic for one in found if one.state == "problem"] == []
    assert "0043" in str(of(found, "migrations"))
