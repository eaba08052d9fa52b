"""Databases that were filled when their schema was the newest, brought up to date.

Schemas that no commit had as its newest (2, 6, 7 and 8) are passed on the way.
"""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from factbook.audit.trail import page_audit
from factbook.auth import users
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.integrations import SOURCES
from factbook.scheduling import runs
from factbook.settings import Settings
from factbook.storage.migrations import compute_expected_schema, introspect_schema
from factbook.web import pages
from tests.api.defining import CONNECTIONS, item
from tests.api.defining import SOURCES as DATA_SOURCES
from tests.api.defining import push as push_facts
from tests.collection.madeup import Vendor, integration
from tests.events import feed
from tests.processes import TOKEN_KEY
from tests.service import PUSH, Service, component, started
from tests.storage.snapshots import Snapshot, all_snapshots, load
from tests.web.visiting import browser

PAYMENTS = "component:default/payments"
DATABASE = "resource:default/main db"
# Before sources could be defined, this one stood in the code of a test.
COVERAGE = DataSource(
    id="coverage",
    title="Coverage",
    version="1.0.0",
    schema=(Fact("lines", "integer"), Fact("tool", "string")),
)


class Upgraded(NamedTuple):
    """A service of today on the database of a snapshot."""

    service: Service
    snapshot: Snapshot

    @property
    def schema(self) -> int:
        return self.snapshot.schema


@pytest.fixture(
    params=all_snapshots(), ids=lambda snapshot: f"{snapshot.schema:04}-{snapshot.made_by}"
)
async def upgraded(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[Upgraded]:
    """A service that has just brought an old database up to date."""
    snapshot: Snapshot = request.param
    await load(snapshot, database_url)
    vendor = integration(Vendor()).source
    more = (COVERAGE,) if snapshot.schema < 5 else (vendor,)
    settings = Settings(database_url=database_url, token_key=TOKEN_KEY)
    async with started(settings, sources=(*SOURCES, *more)) as service:
        service.time.now = snapshot.time
        async with service.client(snapshot.tokens["full"]) as http:
            service.http = http
            yield Upgraded(service, snapshot)


async def found(service: Service, path: str, **query: str) -> Any:
    answer = await service.http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.slow
@pytest.mark.spec("upgrades.every-schema-with-its-data", "upgrades.every-form-of-a-migration")
async def test_an_upgrade_keeps_everything_and_work_continues(upgraded: Upgraded) -> None:
    database = upgraded.service.state.database
    assert await introspect_schema(database) == compute_expected_schema(database.dialect)
    await check_catalog(upgraded)
    await check_access(upgraded)
    await check_work(upgraded)
    await check_sources(upgraded)


async def check_catalog(upgraded: Upgraded) -> None:
    """Everything that was stored is there."""
    service, snapshot = upgraded.service, upgraded.snapshot
    entities = await found(service, "/api/catalog/entities")
    assert sorted(entity["metadata"]["name"] for entity in entities) == snapshot.listed
    payments = await service.catalog(PAYMENTS)
    assert payments is not None
    assert payments["spec"]["owner"] == "team-b"
    assert {"type": "dependsOn", "targetRef": DATABASE} in payments["relations"]
    stored = {row["ref"]: row["uid"] for row in snapshot.rows("entities")}
    assert payments["metadata"]["uid"] == stored[PAYMENTS]
    alone = await service.catalog("component:default/alone")
    assert alone is not None
    assert alone["spec"]["note"] == "Grüße, 日本 'quoted'"
    query = {"filter": "spec.type=DATABASE,spec.owner=team-a", "fullTextFilterTerm": "the data"}
    listed = await found(service, "/api/catalog/entities/by-query", **query)
    assert [each["metadata"]["name"] for each in listed["items"]] == ["Main DB"]
    facets = await found(service, "/api/catalog/entity-facets", facet="spec.lifecycle")
    assert {"value": "experimental", "count": 1} in facets["facets"]["spec.lifecycle"]
    listed = await found(service, f"{PUSH}/sets/services/revisions")
    assert [each["revision"] for each in listed["revisions"]] == [2, 1]
    coverage = await service.facts("get-entity-facts", dataSourceId="coverage", name="payments")
    assert coverage["facts"] == {"lines": 20, "tool": "cov"}
    past = await service.facts("get-fact-history", dataSourceId="coverage", name="payments")
    assert [row["facts"]["lines"] for row in past["history"]] == [20, 10]
    asked = {"dataSourceId": "entity-metadata", "kind": "resource", "name": "main db"}
    assert (await service.facts("get-entity-facts", **asked))["facts"]["hasTitle"] is True


async def check_access(upgraded: Upgraded) -> None:
    """Whoever had access has it, and nobody else."""
    service, snapshot = upgraded.service, upgraded.snapshot
    found_tokens = await found(service, "/api/access/v1/tokens")
    assert not [token for token in found_tokens["tokens"] if "narrowing" in token]
    for name, read, write in (
        ("full", 200, 200),
        ("reader", 200, 403),
        ("expired", 401, 401),
        ("revoked", 401, 401),
    ):
        async with service.client(snapshot.tokens[name]) as http:
            assert (await http.get("/api/catalog/entities")).status_code == read, name
            pushed = await http.put(f"{PUSH}/sets/{name}", json={"items": []})
            assert pushed.status_code == write, name
    for name, status in (("ada", 200), ("vic", 403)):
        if name in snapshot.sessions:
            visitor = browser(service)
            visitor.http.cookies.set(pages.SESSION_COOKIE, snapshot.sessions[name])
            assert (await visitor.open("/administration/audit")).status_code == status
    listed = {one.ref: one.role for one in await users.list_users(service.state.database)}
    assert listed == {row["ref"]: row["role"] for row in snapshot.rows("people")}
    recorded, _ = await page_audit(service.state.database, limit=1000)
    kept = {record.id for record in recorded}
    assert kept.issuperset(row["id"] for row in snapshot.rows("audit"))
    if upgraded.schema >= 9:
        assert (await browser(service).sign_in("ada")).status_code == 303
        [connection] = (await found(service, CONNECTIONS))["connections"]
        assert [each["name"] for each in connection["headers"]] == ["authorization", "x-team"]


async def check_work(upgraded: Upgraded) -> None:
    """Sets, revisions and events continue where they were."""
    service, snapshot = upgraded.service, upgraded.snapshot
    restored = await service.http.post(f"{PUSH}/sets/services/revisions/1/restore")
    assert restored.status_code == 200, restored.text
    assert (restored.json()["revision"], restored.json()["changes"]["added"]) == (3, 1)
    ledger = await service.catalog("component:default/ledger")
    assert ledger is not None
    gone = {row["ref"]: row["uid"] for row in snapshot.rows("removed_entities")}
    assert ledger["metadata"]["uid"] == gone["component:default/ledger"]
    assert await service.catalog("component:default/checkout") is None
    pushed = await service.push("new", component("new"), component("payments"), onConflict="take")
    assert pushed.status_code == 200, pushed.text
    numbers = await service.state.database.all("SELECT id FROM entities")
    assert len(set(numbers)) == len(snapshot.listed) + 1
    if snapshot.cursor:
        later = await feed.events(service, after=snapshot.cursor)
        every = await feed.events(service)
        assert [each["id"] for each in every] == snapshot.events + [each["id"] for each in later]
        [hook] = (await found(service, "/api/events/webhooks"))["webhooks"]
        assert hook["url"] == "http://192.0.2.1/…"
        rows = await service.state.database.all(
            "SELECT url, address IS NULL FROM webhook_endpoints"
        )
        assert [tuple(map(str, row)) for row in rows] in (
            [("http://192.0.2.1/…", "0")],
            [("http://192.0.2.1/…", "False")],
        )
    assert (await feed.said(service, type="set.replaced"))[-1] == ("set.replaced", "new")


async def check_sources(upgraded: Upgraded) -> None:
    """Runs, and sources that users defined, are what they were and can be worked with."""
    service = upgraded.service
    if upgraded.schema >= 4:
        health = (await runs.fetch_health(service.state.database))["vendor"]
        assert health.last is not None
        assert (health.last.entities, health.last.covered) == (2, 2)
    if upgraded.schema >= 5:
        listed = (await found(service, f"{DATA_SOURCES}/owners/runs"))["runs"]
        assert [each["entities"] for each in listed] == [6]
        owners = await service.facts("get-entity-facts", dataSourceId="owners", name="payments")
        assert owners["facts"] == {"owner": "team-b"}
        vendor = await service.facts("get-entity-facts", dataSourceId="vendor", name="two")
        assert vendor["facts"]["codehost.issues.open"] == 4
        assert (await found(service, f"{DATA_SOURCES}/draft"))["version"] == "0.0.0"
        service.time.advance(1000)
        await push_facts(service, item(PAYMENTS, lines=30))
        past = await service.facts("get-fact-history", dataSourceId="coverage", name="payments")
        assert [row["facts"]["lines"] for row in past["history"]] == [30, 20, 10]
