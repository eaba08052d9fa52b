"""`python -m tests.storage.filling COMMIT`: a file of what this service leaves in a database.

To be run once, when the migration that makes a new schema has landed.
"""

import asyncio
import base64
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.clock import DAY, HOUR
from factbook.collection import run_start
from factbook.integrations import SOURCES
from factbook.operations import commands
from factbook.settings import Settings
from factbook.storage.migrations import list_migrations
from factbook.web import pages
from tests.api.defining import SOURCES as DATA_SOURCES
from tests.api.defining import define, item, of_entities, push, pushed
from tests.api.test_connections import made
from tests.collection.world import World
from tests.events.feed import page
from tests.processes import TOKEN_KEY
from tests.service import PUSH, Service, component, started
from tests.storage.snapshots import FOLDER, text_of
from tests.web.visiting import signed_in, with_password


def _resource(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Resource",
        "metadata": {"name": name, **metadata},
        "spec": {"type": "database", "owner": "team-a"},
    }


def _done(answer: httpx2.Response) -> None:
    assert answer.status_code < 300, answer.text


async def _fill_catalog(service: Service) -> None:
    database, queue = _resource("Main DB", title="The database"), _resource("queue", tags=["kafka"])
    _done(await service.push("infra", database, queue))
    shop = component("Web-Shop", type="website")
    payments = component("payments", dependsOn=["resource:main db"])
    _done(await service.push("services", payments, component("ledger"), shop))
    service.time.advance(2 * HOUR)
    payments["spec"]["owner"] = "team-b"
    checkout = component("checkout", lifecycle="experimental")
    _done(await service.push("services", payments, shop, checkout))
    alone = component("alone", note="Grüße, 日本 'quoted'")
    _done(await service.http.post(f"{PUSH}/entities", json=alone))
    _done(await service.push("gone", component("gone")))
    _done(await service.http.delete(f"{PUSH}/sets/gone"))


async def _tokens(service: Service) -> dict[str, str]:
    reads, kim = (CATALOG_READ, SOURCE_READ), "user:default/kim"
    found = {
        "full": await service.token(name="full"),
        "reader": await service.token(*reads, owner=kim, name="reader", lifetime=90 * DAY),
        "expired": await service.token(name="expired", lifetime=HOUR),
        "revoked": await service.token(name="revoked"),
    }
    _done(await service.http.delete("/api/access/v1/tokens/revoked"))
    return found


async def _fill_facts(service: Service) -> None:
    await define(service, pushed())
    for lines in (10, 20):
        service.time.advance(HOUR)
        await push(service, item("component:default/payments", lines=lines, tool="cov"))
    await define(service, of_entities())
    await commands.collect_now(service.application, "owners", None, lambda run: None, service.time)
    _done(await service.http.put(f"{DATA_SOURCES}/draft", json=pushed("draft")))
    world = World(service)
    await world.push("one", "two")
    world.vendor.open.update({"acme/one": 3, "acme/two": 4})
    world.vendor.remembers = True
    await world.next_run()
    await world.collector.stop()
    await run_start.sample_catalog(service.state.database, SOURCES, service.time())


async def _sessions(service: Service) -> dict[str, str]:
    ada = await with_password(service)
    vic = await signed_in(service, "vic", "viewer")
    await made(service)
    await ada.open("/administration/people")
    await ada.send("/administration/people/-/invitations", role="viewer", name="mia")
    async with service.client(None) as http:
        assert (await http.get("/api/catalog/entities")).status_code == 401
    return {
        "ada": ada.http.cookies[pages.SESSION_COOKIE],
        "vic": vic.http.cookies[pages.SESSION_COOKIE],
    }


async def _fill(url: str, commit: str) -> dict[str, Any]:
    settings = Settings(database_url=url, token_key=TOKEN_KEY, outgoing_networks=["192.0.2.0/24"])
    async with started(settings) as service:
        tokens = await _tokens(service)
        await _fill_catalog(service)
        await _fill_facts(service)
        sessions = await _sessions(service)
        first = await page(service, limit=3)
        hook = {"url": "http://192.0.2.1/hook", "types": ["set.replaced"]}
        _done(await service.http.post("/api/events/webhooks", json=hook))
        entities = (await service.http.get("/api/catalog/entities")).json()
        return {
            "made_by": commit,
            "tokens": tokens,
            "sessions": sessions,
            "cursor": first["nextCursor"],
            "events": [event["id"] for event in first["events"]],
            "time": service.time(),
            "listed": sorted(entity["metadata"]["name"] for entity in entities),
        }


def _tables(file: Path) -> dict[str, dict[str, Any]]:
    listing = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    found: dict[str, dict[str, Any]] = {}
    with closing(sqlite3.connect(file)) as database:
        for (name,) in database.execute(listing).fetchall():
            cursor = database.execute(f"SELECT * FROM {name} ORDER BY 1, 2")  # noqa: S608 - a table
            rows = [[_written(value) for value in row] for row in cursor]
            if rows and not name.startswith("sqlite_"):
                found[name] = {"columns": [each[0] for each in cursor.description], "rows": rows}
    return found


def _written(value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    return {"base64": base64.b64encode(value).decode()}


def main(commit: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "factbook.db"
        content = asyncio.run(_fill(f"sqlite:///{file}", commit))
        lines = text_of(content, _tables(file))
        target = FOLDER / f"schema-{list_migrations()[-1][:4]}.json"
        target.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
