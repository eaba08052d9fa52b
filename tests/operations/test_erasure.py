"""Erasing the data of a person who has left: nothing of it stays, and nothing else goes."""

import asyncio
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from factbook.auth import users
from factbook.operations.erasure import REPLACED
from factbook.storage import Database, Transaction
from factbook.storage.migrations import introspect_schema
from tests import commands
from tests.api.checking import EXEMPTIONS, check, put, with_source
from tests.api.defining import item
from tests.api.defining import push as push_facts
from tests.auth import accounts
from tests.conftest import StartService
from tests.processes import TOKEN_KEY, clean_environment
from tests.scim.provisioning import Provider
from tests.service import Service, component
from tests.storage.test_table_owners import OWNER
from tests.web import visiting

ROBIN = "user:default/robin"
# Whose names contain the person's, or are contained in it.
OTHERS = ("robinson", "robin-lee", "rob")
ADDRESS = "203.0.113.77"
MAIL = "r.reed@example.org"
TRACES = re.compile(r"robin(?!son|-lee)|r\.reed|203\.0\.113\.77|00u1abcd99", re.I)
TOKENS = "/api/access/v1/tokens"


def person(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "User",
        "metadata": {"name": name},
        "spec": {"memberOf": [], **spec},
    }


def team(*members: str) -> dict[str, Any]:
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Group",
        "metadata": {"name": "team-a"},
        "spec": {"type": "team", "children": [], "members": list(members)},
    }


async def tables(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    return {name: await database.all(f"SELECT * FROM {name}") for name in sorted(OWNER)}  # noqa: S608


def traces(found: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[str]]:
    """The texts of every table that identify the person."""
    texts = {
        table: [
            value.decode("latin-1") if isinstance(value, bytes) else str(value)
            for row in rows
            for value in row
        ]
        for table, rows in found.items()
    }
    wrong = {
        table: [text for text in given if TRACES.search(text)] for table, given in texts.items()
    }
    return {table: given for table, given in wrong.items() if given}


async def erase(service: Service, *options: str, name: str = "robin") -> tuple[int, Any, str]:
    """The exit code of the command, its JSON, and what it said beside."""
    given = ("people", "erase", name, "--json", *options)
    variables = clean_environment() | {"FACTBOOK_TOKEN_KEY": TOKEN_KEY}
    done = await asyncio.to_thread(
        commands.invoke, Path(), variables, *given, f"--database-url={service.database_url}"
    )
    return done.exit_code, json.loads(done.stdout.strip() or "null"), done.stderr


async def work(service: Service, name: str, address: str) -> None:
    """A person signs in, and leaves something wherever people can."""
    await visiting.with_password(service, name, "editor", address=address)
    await service.state.database.write(
        lambda tx: users.rename_user(tx, f"user:default/{name}", f"Reed {name.title()}")
    )
    visitor = visiting.browser(service, address=address)
    await visitor.open("/sign-in")
    await visitor.send("/sign-in", name=name, password="wrong", next="/")
    token = await service.token(owner=f"user:default/{name}", name=f"laptop of {name}")
    async with service.client(token, address=address) as http:
        own, service.http = service.http, http
        made = await http.post(TOKENS, json={"name": f"ci of {name}"})
        assert made.status_code == 201, made.text
        answer = await service.push(f"of-r{len(name)}", component(f"web{len(name)}"))
        assert answer.status_code == 200, answer.text
        assert (await put(service, check(f"by-{len(name)}"), publish=True)).status_code < 300
        wish = {"check": f"by-{len(name)}", "entity": f"component:web{len(name)}"}
        asked = {**wish, "reason": f"user:default/{name} retires it", "until": "2027-03-31"}
        answer = await http.post(EXEMPTIONS, json=asked)
        assert answer.status_code == 201, answer.text
        webhook = {"url": "https://hooks.example.com/a"}
        assert (await http.post("/api/events/webhooks", json=webhook)).status_code == 201
        service.http = own
    async with service.client(
        await service.token("events.read", owner=f"user:default/{name}"), address=address
    ) as http:
        assert (await http.get(TOKENS)).status_code == 403
        await http.get(f"/api/catalog/entities/by-name/user/default/{name}")


@pytest.fixture
async def service(start: StartService) -> Service:
    """A service that somebody has left whom the identity provider and a set had named."""
    service = await start(people_sets=["people"])
    await visiting.signed_in(service, "ada")
    await with_source(service)
    scim = await Provider.at(service)
    mails = [{"value": MAIL, "primary": True}]
    pushed = await scim.user(
        "robin@example.org", displayName="Reed Robin", emails=mails, externalId="00u1abcd99"
    )
    await scim.delete(pushed)
    pushed = await scim.user(
        "robin@example.org", displayName="Reed Robin", emails=mails, externalId="00u1abcd99"
    )
    await work(service, "robin", ADDRESS)
    for number, name in enumerate(OTHERS):
        await work(service, name, f"203.0.113.{number}")
    await scim.patched(pushed, {"op": "replace", "path": "active", "value": False})
    profile = {"email": MAIL, "displayName": "Reed Robin"}
    for items in (
        [team("robin", *OTHERS), person("robin", profile=profile), *map(person, OTHERS)],
        [team(*OTHERS), *map(person, OTHERS)],
    ):
        assert (await service.push("people", *items)).status_code == 200
        service.time.advance(1_000)
        if len(items) == 5:
            facts = item(ROBIN, lines=1, tool="user:default/robin"), item("component:web5", lines=2)
            await push_facts(service, *facts)
    facts_of_others = item("component:web5", lines=3, tool="user:default/robin")
    await push_facts(service, facts_of_others)
    return service


@pytest.mark.slow
@pytest.mark.both_databases
async def test_nothing_of_an_erased_person_stays_and_others_are_untouched(service: Service) -> None:
    database = service.state.database
    before = await tables(database)
    assert {"audit", "people", "sessions", "tokens", "scim_resources", "exemptions"} < {
        *traces(before)
    }
    code, planned, said = await erase(service, "--dry-run")
    assert (code, planned["pseudonym"]) == (0, None), said
    assert await tables(database) == before
    code, done, said = await erase(service, "--yes")
    assert code == 0, said
    assert (done["deleted"], done["replaced"]) == (planned["deleted"], planned["replaced"])
    pseudonym = done["pseudonym"]
    assert re.fullmatch(r"user:default/erased-[0-9a-f]{8}", pseudonym)
    after = await tables(database)
    assert traces(after) == {}
    assert {name for name in after if len(after[name]) != len(before[name])} == {
        "audit", "facts_history", "facts_latest", "people", "removed_entities", "revision_changes",
        "scim_resources", "search_keys", "sessions", "tokens",
    }  # fmt: skip
    assert len(after["audit"]) == len(before["audit"]) + 1
    for table in before.keys() - {"counters", "search_keys"}:
        untouched = {row for row in before[table] if not TRACES.search(str(row))}
        assert untouched <= set(after[table]), table
    records = (await service.http.get("/api/access/v1/audit", params={"actor": pseudonym})).json()
    assert {each["address"] for each in records["records"]} == {""}
    assert {"session.start", "token.create", "set.push", "check.publish", "exemption.request"} <= {
        each["action"] for each in records["records"]
    }
    query = {"action": "person.erase"}
    [record] = (await service.http.get("/api/access/v1/audit", params=query)).json()["records"]
    assert (record["actor"], record["object"]) == ("command line", pseudonym)
    code, answer, said = await erase(service, "--yes")
    assert (code, answer) == (1, None)
    assert "There is no data about user:default/robin" in said


@pytest.mark.slow
@pytest.mark.both_databases
async def test_an_interrupted_erasure_is_resumed_with_the_same_pseudonym(service: Service) -> None:
    database = service.state.database
    await close(database, "UPDATE ON exemptions")
    assert (await erase(service, "--yes"))[0] == 1
    assert traces({"exemptions": await database.all("SELECT requested_by FROM exemptions")}) != {}
    await reopen(database, "exemptions")
    # Nothing but the erasure itself is left then.
    await close(database, "DELETE ON erasures")
    assert (await erase(service, "--yes"))[0] == 1
    assert traces(await tables(database)).keys() == {"erasures"}
    await reopen(database, "erasures")
    code, done, said = await erase(service, "--yes")
    assert code == 0, said
    assert (done["deleted"], done["replaced"]) == ({"interrupted erasures": 1}, {})
    assert traces(await tables(database)) == {}
    actors = await database.all("SELECT DISTINCT actor FROM audit WHERE actor LIKE '%erased%'")
    assert actors == [(done["pseudonym"],)]
    erasures = await database.all("SELECT object FROM audit WHERE action = 'person.erase'")
    assert erasures == [(done["pseudonym"],)]


async def close(database: Database, what: str) -> None:
    """Have the database refuse something, so that a command ends there."""

    def work(transaction: Transaction) -> None:
        if database.dialect == "sqlite":
            raised = "BEGIN SELECT RAISE(ABORT, 'closed'); END"
            transaction.run(f"CREATE TRIGGER closed BEFORE {what} {raised}")
            return
        transaction.run(
            "CREATE OR REPLACE FUNCTION closed() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'closed'; END $$"
        )
        transaction.run(f"CREATE TRIGGER closed BEFORE {what} EXECUTE FUNCTION closed()")

    await database.write(work)


async def reopen(database: Database, table: str) -> None:
    of = f" ON {table}" if database.dialect == "postgresql" else ""
    await database.write(lambda tx: tx.run(f"DROP TRIGGER closed{of}"))


@pytest.mark.slow
async def test_a_person_who_would_come_back_is_not_erased(service: Service) -> None:
    database = service.state.database
    before = await tables(database)
    code, answer, said = await erase(service, "--yes", name="rob")
    assert (code, answer) == (1, None)
    assert "user:default/rob is in the catalog, in the set people. Remove it there first" in said
    assert await tables(database) == before
    owned = component("web5", owner="user:robin")
    assert (await service.push("of-r5", owned)).status_code == 200
    code, _, said = await erase(service, "--yes")
    assert code == 1
    assert "still names user:default/robin: component:default/web5 (ownedBy, in the set of" in said
    assert (await service.push("of-r5", component("web5"))).status_code == 200
    scim = await Provider.at(service)
    await scim.user("robin-2@example.org", externalId="00u1")
    code, _, said = await erase(service, "--yes", name="robin-2")
    assert code == 1
    assert "The SCIM user robin-2@example.org is active. Remove the person at the" in said
    code, _, said = await erase(service, "--yes", name="ada")
    assert code == 1
    assert "user:default/ada is the only administrator; give someone else the role first" in said
    code, _, said = await erase(service, "--yes", name="nobody")
    assert code == 1
    assert "There is no data about user:default/nobody: no account and no records" in said
    code, answer, said = await erase(service)
    assert (code, answer) == (1, None)
    assert "Erasure canceled. Use --yes to skip the question." in said
    await database.write(
        lambda tx: tx.run("UPDATE sets SET name = 'import/directory/all' WHERE name = 'people'")
    )
    code, _, said = await erase(service, "--yes", name="rob")
    assert "user:default/rob is in the catalog, from the importer directory. Remove it" in said
    assert await database.one("SELECT 1 FROM people WHERE ref = ?", (ROBIN,)) is not None


FILLING = {"TEXT": "x", "INTEGER": 1, "BLOB": b""}
NAMING = json.dumps({"metadata": {}, "by": ROBIN, "mail": MAIL, "actor": "user:default/robin-lee"})


@pytest.mark.slow
@pytest.mark.both_databases
async def test_the_person_is_replaced_in_every_column_that_can_name_one(
    start: StartService,
) -> None:
    service = await start()
    database = service.state.database
    await accounts.add(database, "user:default/ada")
    await accounts.add(database, ROBIN, display_name="Reed Robin", issuer="a", subject=MAIL)
    columns = await columns_of(database)

    def fill(transaction: Transaction) -> None:
        for where in REPLACED:
            values: dict[str, Any] = {
                name: NAMING if name in where.columns else FILLING[type_]
                for name, type_ in columns[where.table].items()
                if type_ in FILLING
            }
            if where.table == "audit":
                values["actor"] = ROBIN
            transaction.insert(where.table, list(values), [tuple(values.values())])

    await database.write(fill)
    await database.write(
        lambda tx: tx.run(
            "INSERT INTO memories (source_id, key, value, updated_at) VALUES ('a', 'b', ?, 1)",
            (zlib.compress(NAMING.encode(), level=1),),
        )
    )
    before = await tables(database)
    code, done, said = await erase(service, "--yes")
    assert code == 0, said
    after = await tables(database)
    assert traces(after) == {}
    assert done["deleted"] == {"accounts": 1, "cached answers": 1}
    assert set(done["replaced"]) == {where.title for where in REPLACED}
    counts = {table: len(after[table]) - len(rows) for table, rows in before.items()}
    assert {table: count for table, count in counts.items() if count} == {
        "audit": 1, "memories": -1, "people": -1,
    }  # fmt: skip
    for where in REPLACED:
        assert "user:default/robin-lee" in str(after[where.table])


async def columns_of(database: Database) -> dict[str, dict[str, str]]:
    """The type of each column by table; a key that the database gives has the type SERIAL."""
    found: dict[str, dict[str, str]] = {}
    for name, text in (await introspect_schema(database)).items():
        if name.startswith("column "):
            table, _, column = name.removeprefix("column ").partition(".")
            type_ = text.split()[0].replace("SORTED_TEXT", "TEXT")
            serial = (table, column) in (("events", "id"), ("check_changes", "id"))
            found.setdefault(table, {})[column] = "SERIAL" if serial else type_
    return found


async def test_every_column_of_text_is_searched_deleted_or_known_to_name_nobody(
    database: Database,
) -> None:
    """Whoever adds a column says here, or in `personal_tables`, what an erasure does with it."""
    searched = {(where.table, column) for where in REPLACED for column in where.columns}
    texts = {
        (table, column)
        for table, columns in (await columns_of(database)).items()
        if table not in GONE
        for column, type_ in columns.items()
        if type_ in ("TEXT", "BLOB")
    }
    others = {
        (table, column)
        for group in (OF_DELETED_ROWS, OF_THE_CATALOG, NAMES_NOBODY)
        for table, columns in group.items()
        for column in columns.split()
    }
    assert {one for one in searched if one[0] not in GONE} | others == texts
    assert not searched & others


# Tables that hold nothing but rows that are deleted with their person, and what is searched.
GONE = {
    *("people", "sessions", "invitations", "oauth_consents", "oauth_tokens", "account_links"),
    *("tokens", "token_usage", "scim_members", "removed_entities", "memories", "erasures"),
}
# Columns of rows that are deleted with their person.
OF_DELETED_ROWS = {
    "digests": "owner",
    "revision_changes": "ref",
    "scim_resources": "name_key display_key external_id ref disabled_ref",
}
# What the catalog states now. While it names the person, the erasure is refused.
OF_THE_CATALOG = {
    "check_states": "owner",
    "entities": "uid ref kind namespace name etag relations problems head body",
    "relations": "type target_ref",
    "scorecard_label_counts": "label value",
    "scorecard_levels": "owner system kind labels",
    "search": "value original",
    "search_keys": "key",
}
# Ids, states, versions, names of things and of processes, and secrets of the service itself.
NAMES_NOBODY = {
    "audit": "id action outcome token granted",
    "batches": "queue holder",
    "check_changes": "check_id",
    "check_days": "check_id",
    "check_states": "states levels",
    "check_versions": "check_id version",
    "checks": "id version pending_version",
    "connections": "name secrets",
    "counters": "name",
    "data_source_versions": "source_id version",
    "data_sources": "id version",
    "digests": "id form url address cadence day time_zone levels",
    "events": "topic",
    "exemptions": "id check_id scorecard_id state",
    "facts_history": "source_id version",
    "facts_latest": "source_id version",
    "given_up_batches": "source_id",
    "history_trims": "source_id",
    "housekeeping": "part error",
    "import_deliveries": "importer delivery",
    "import_hints": "importer hint",
    "import_parts": "importer part state reason rights seen_rights",
    "import_runs": "importer reason state holder",
    "importers": "id kind secrets",
    "leases": "name holder",
    "oauth_clients": "id name redirect_uris",
    "queues": "name",
    "run_gaps": "place reason kind",
    "runs": "source_id reason",
    "scim_resources": "id type",
    "scorecard_counts": "system kind",
    "scorecard_days": "scorecard_id levels",
    "scorecard_levels": "levels",
    "scorecard_versions": "scorecard_id version",
    "scorecards": "id version pending_version ruling",
    "sets": "name",
    "source_health": "source_id",
    "webhook_endpoints": "id url address types secret holder",
    "webhook_retries": "webhook_id event_id type",
    "webhooks": "id url types secret holder",
}
