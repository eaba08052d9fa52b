"""Each write leaves one record, in the same transaction; what writes nothing leaves none."""

import pytest

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.clock import SECOND
from factbook.operations import commands
from tests.api.auditing import ENTITIES, TESTER, TOKENS, Watch, records, token_id
from tests.api.defining import FACTS, SOURCES, item, of_entities, pushed
from tests.service import PUSH, TOOLS, Service, call, component

REFRESH = "/api/catalog/refresh"
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def changes(**counts: int) -> dict[str, int]:
    return {"added": 0, "updated": 0, "removed": 0, "unchanged": 0, **counts}


async def test_each_push_leaves_one_record(service: Service) -> None:
    watch, http, shop = Watch(service), service.http, f"{PUSH}/sets/shop"
    two = {"items": [component("web"), component("api")]}
    assert await watch.written(await http.put(shop, json=two)) == (
        "set.push", "shop", {"revision": 1, **changes(added=2)},
    )  # fmt: skip
    assert await watch.written(await http.put(shop, json=two)) == (
        "set.push", "shop", {"revision": 1, **changes(unchanged=2)},
    )  # fmt: skip
    assert await watch.written(await http.post(shop, json=component("DB"))) == (
        "entity.put", "component:default/db", {"set": "shop", "revision": 2, **changes(added=1)},
    )  # fmt: skip
    alone = await http.post(f"{PUSH}/entities", json=component("alone"))
    assert await watch.written(alone) == (
        "entity.put", "component:default/alone", {"revision": 0, **changes(added=1)},
    )  # fmt: skip
    assert await watch.written(await http.post(f"{shop}/revisions/1/restore")) == (
        "set.restore", "shop", {"restored": 1, "revision": 3, **changes(removed=1, unchanged=2)},
    )  # fmt: skip
    web = (await http.get(f"{PUSH}/entities/by-ref/component:web")).json()["id"]
    assert await watch.written(await http.delete(f"{PUSH}/entities/{web}")) == (
        "entity.delete", "component:default/web",
        {"set": "shop", "revision": 4, **changes(removed=1)},
    )  # fmt: skip
    assert await watch.written(await http.delete(f"{ENTITIES}/by-uid/{alone.json()['id']}")) == (
        "entity.delete", "component:default/alone", {"revision": 0, **changes(removed=1)},
    )  # fmt: skip
    assert await watch.written(await http.delete(shop)) == (
        "set.delete", "shop", {"revision": 5, **changes(removed=1)},
    )  # fmt: skip


async def test_an_entity_that_moves_or_stays_as_it_is_leaves_one_record(service: Service) -> None:
    await service.push("shop", component("web"))
    watch, http = Watch(service), service.http
    await watch.new()
    for query, body, counted in (
        ({"onConflict": "take"}, component("web"), changes(added=1)),
        ({}, component("web"), changes(unchanged=1)),
        ({}, component("web", owner="team-b"), changes(updated=1)),
    ):
        answer = await http.post(f"{PUSH}/entities", json=body, params=query)
        assert await watch.written(answer) == (
            "entity.put", "component:default/web", {"revision": 0, **counted},
        )  # fmt: skip


async def test_what_writes_nothing_leaves_no_record(service: Service) -> None:
    http, shop = service.http, f"{PUSH}/sets/shop"
    await service.push("shop", component("web"))
    watch = Watch(service)
    await watch.new()
    dry = {"dryRun": "true"}
    assert (await http.put(shop, json={"items": []}, params=dry)).status_code == 200
    assert (await http.delete(shop, params=dry)).status_code == 200
    assert (await http.delete(f"{ENTITIES}/by-uid/nobody")).status_code == 204
    assert (await http.delete(f"{PUSH}/entities/nobody")).status_code == 404
    assert (await http.get(f"{PUSH}/sets/none")).status_code == 404
    assert (await http.get(ENTITIES, params={"surprise": "1"})).status_code == 400
    assert (await http.post(f"{ENTITIES}/by-query", content=b"{")).status_code == 400
    assert (await http.post(TOOLS, content=b"{")).status_code == 415
    assert (await http.post(TOOLS, json=call("get-data-source-discovery", {}))).status_code == 200
    assert await watch.new() == []


async def test_each_change_of_a_data_source_and_its_facts_leaves_one_record(
    service: Service,
) -> None:
    await service.push("all", component("web"))
    watch, http = Watch(service), service.http
    await watch.new()
    one = f"{SOURCES}/coverage"
    draft = {"version": "0.0.0", "changed": True}
    assert await watch.written(await http.post(SOURCES, json=pushed())) == (
        "data-source.create", "coverage", draft,
    )  # fmt: skip
    assert await watch.written(await http.put(one, json=pushed(title="Covered"))) == (
        "data-source.replace", "coverage", draft,
    )  # fmt: skip
    published = {"version": "1.0.0", "changed": True}
    assert await watch.written(await http.post(f"{one}/publish")) == (
        "data-source.publish", "coverage", published,
    )  # fmt: skip
    items = [item(lines=1), item("component:nobody", lines=1)]
    assert await watch.written(await http.post(f"{FACTS}/coverage", json={"items": items})) == (
        "facts.push", "coverage", {"version": "1.0.0", "items": 2, "accepted": 1},
    )  # fmt: skip
    owners = await http.put(f"{SOURCES}/owners", json=of_entities())
    assert await watch.written(owners) == ("data-source.replace", "owners", draft)
    web = {"entity": "component:default/web"}
    action, object_, detail = await watch.written(
        await http.post(f"{SOURCES}/owners/run", json=web)
    )
    assert (action, object_, detail["entity"]) == ("data-source.run", "owners", web["entity"])
    everything = await http.post(f"{SOURCES}/owners/run")
    assert await watch.written(everything) == (
        "data-source.run", "owners", {"run": everything.json()["id"]},
    )  # fmt: skip
    asked = await http.post(REFRESH, json={"entityRef": "Component:web"})
    assert await watch.written(asked) == ("entity.refresh", "component:default/web", {})
    assert await watch.written(await http.delete(one)) == ("data-source.delete", "coverage", {})


@ON_SQLITE
async def test_a_definition_that_says_nothing_new_is_recorded_as_such(service: Service) -> None:
    await service.http.post(SOURCES, json=pushed())
    await service.http.post(f"{SOURCES}/coverage/publish")
    service.time.advance(SECOND)
    await service.http.put(f"{SOURCES}/coverage", json=pushed())
    await service.http.post(f"{SOURCES}/coverage/publish")
    last = (await records(service))[-2:]
    assert [record["detail"]["changed"] for record in last] == [False, False]


async def test_making_and_revoking_a_token_leave_one_record_each(service: Service) -> None:
    watch, http = Watch(service), service.http
    made = await http.post(TOKENS, json={"name": "agent", "permissions": [CATALOG_READ]})
    id_ = made.json()["id"]
    about = {"name": "agent", "owner": TESTER, "permissions": [CATALOG_READ]}
    assert await watch.written(made) == ("token.create", id_, about)
    assert await watch.written(await http.delete(f"{TOKENS}/agent")) == ("token.revoke", id_, about)


async def test_what_is_done_on_the_command_line_is_recorded(service: Service) -> None:
    await service.push("all", component("web"))
    await service.http.put(f"{SOURCES}/owners", json=of_entities())
    await service.http.post(f"{SOURCES}/owners/publish")
    watch, application = Watch(service), service.application
    await watch.new()
    await commands.create_token(application, "laptop", "user:kim", [SOURCE_READ], "1d")
    id_ = await token_id(service, "laptop")
    await commands.revoke_token(application, "laptop")
    await commands.collect_now(application, "owners", "web", lambda run: None, service.time)
    # Tokens are made at the computer's time, which is not the test's.
    run, made, revoked = sorted(await watch.new(), key=lambda each: str(each["action"]))
    assert {
        (each["actor"], each["address"], each["token"], each["status"], each["outcome"])
        for each in (made, revoked, run)
    } == {("command line", "", "", 0, "done")}
    assert (made["action"], made["object"]) == ("token.create", id_)
    assert made["detail"]["owner"] == "user:default/kim"
    assert (revoked["action"], revoked["object"]) == ("token.revoke", id_)
    assert (run["action"], run["object"], run["detail"]["entity"]) == (
        "data-source.run", "owners", "web",
    )  # fmt: skip


async def test_a_write_that_cannot_be_recorded_is_not_done(service: Service) -> None:
    await service.push("shop", component("web"))
    await service.state.database.write(lambda tx: tx.run("ALTER TABLE audit RENAME TO aside"))
    assert (await service.push("shop", component("api"))).status_code == 500
    answer = await service.http.post(TOKENS, json={"name": "agent"})
    assert answer.status_code == 500
    await service.state.database.write(lambda tx: tx.run("ALTER TABLE aside RENAME TO audit"))
    assert [each["action"] for each in await records(service)] == ["set.push"]
    assert await service.catalog("component:default/web") is not None
    assert await service.catalog("component:default/api") is None
    assert len((await service.http.get(TOKENS)).json()["tokens"]) == 1
