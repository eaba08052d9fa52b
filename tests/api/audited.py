"""A call of every route of the API that writes, and what it leaves in the audit."""

from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final, NamedTuple

import httpx2

from tests.api.checking import (
    CHECKS,
    DIGESTS,
    EXEMPTIONS,
    OWNED,
    SCORECARDS,
    STARTER,
    check,
    scorecard,
    wish,
)
from tests.api.defining import CONNECTIONS, FACTS, SOURCES, item, of_entities, pushed
from tests.importers.madeup import known_to
from tests.importers.reading import Imports
from tests.importers.reading import item as imported_item
from tests.importers.reading import part as imported
from tests.service import PUSH, Service, component

TOKENS = "/api/access/v1/tokens"
WEBHOOKS = "/api/events/webhooks"
CATALOG = "/api/catalog"
PARTS = "/api/importers/v1/parts"
IMPORTERS = "/api/importers/v1/importers"


class Done(NamedTuple):
    """A route, a call of it that is to be made, and what it leaves."""

    route: str
    call: Coroutine[Any, Any, httpx2.Response]
    action: str


# No GET, and yet nothing is written by them.
READS: Final = frozenset(
    {
        "POST /api/mcp/v1/tech-insights-facts",
        "POST /api/mcp/v1/tech-insights-checks",
        "POST /mcp",
        "POST /api/catalog/entities/by-query",
        "POST /api/catalog/entities/by-refs",
        "POST /api/catalog/entities/by-refs/",
        "POST /api/catalog/entity-facets",
        "POST /api/catalog/validate-entity",
        "POST /api/catalog/locations/by-query",
        "POST /api/catalog/analyze-location",
        # Trials: what they bring is shown and not stored.
        "POST /api/tech-insights/v1/data-sources/{id}/test",
        "POST /api/events/webhooks/{id}/test",
        "POST /api/tech-insights/v1/digests/{id}/test",
        "POST /api/tech-insights/v1/checks/preview",
        "POST /api/tech-insights/v1/check-results/preview",
        "POST /api/tech-insights/checks/run",
        "POST /api/tech-insights/checks/run/{namespace}/{kind}/{name}",
        # For people who let a client in, which is recorded: tests/api/test_oauth_tokens.py.
        "POST /oauth/token",
        "POST /oauth/revoke",
        "POST /oauth/register",
        # A hint: what is read and written after it is recorded.
        "POST /api/importers/v1/importers/{importer}/events",
    }
)
# What is never done, whoever asks.
REFUSED_ALWAYS: Final = frozenset(
    {
        "POST /api/catalog/locations",
        "PUT /api/catalog/locations/{id}",
        "DELETE /api/catalog/locations/{id}",
        "PUT /api/catalog/factbook-entities/sets/{set_id:path}",
        "POST /api/catalog/factbook-entities/sets/{set_id:path}",
        "DELETE /api/catalog/factbook-entities/sets/{set_id:path}",
        "POST /scim/v2/{rest:path}",
        "PUT /scim/v2/{rest:path}",
        "PATCH /scim/v2/{rest:path}",
        "DELETE /scim/v2/{rest:path}",
    }
)


async def every_write(service: Service) -> AsyncIterator[Done]:
    """Each is to be made before the next is asked for."""
    for part in (_sets, _entities, _access, _sources, _checks, _starter, _imports, _provisioning):
        async for done in part(service):
            yield done


async def _sets(service: Service) -> AsyncIterator[Done]:
    http, one = service.http, f"{PUSH}/sets/shop"
    place = f"{PUSH}/sets/{{set_id}}"
    web = component("web")
    yield Done(f"PUT {place}", http.put(one, json={"items": [web]}), "set.push")
    yield Done(f"POST {place}", http.post(one, json=component("api")), "entity.put")
    restore = http.post(f"{one}/revisions/1/restore")
    yield Done(f"POST {place}/revisions/{{number}}/restore", restore, "set.restore")
    yield Done(f"DELETE {place}", http.delete(one), "set.delete")


async def _entities(service: Service) -> AsyncIterator[Done]:
    http = service.http
    alone = http.post(f"{PUSH}/entities", json=component("alone"))
    yield Done(f"POST {PUSH}/entities", alone, "entity.put")
    asked = http.post(f"{CATALOG}/refresh", json={"entityRef": "component:alone"})
    yield Done(f"POST {CATALOG}/refresh", asked, "entity.refresh")
    uid = (await http.get(f"{PUSH}/entities")).json()["items"][0]["id"]
    gone = http.delete(f"{PUSH}/entities/{uid}")
    yield Done(f"DELETE {PUSH}/entities/{{uid}}", gone, "entity.delete")
    uid = (await http.post(f"{PUSH}/entities", json=component("web"))).json()["id"]
    gone = http.delete(f"{CATALOG}/entities/by-uid/{uid}")
    yield Done(f"DELETE {CATALOG}/entities/by-uid/{{uid}}", gone, "entity.delete")


async def _access(service: Service) -> AsyncIterator[Done]:
    http = service.http
    yield Done(f"POST {TOKENS}", http.post(TOKENS, json={"name": "new"}), "token.create")
    yield Done(f"DELETE {TOKENS}/{{id}}", http.delete(f"{TOKENS}/new"), "token.revoke")
    hook = {"url": "https://127.0.0.1:9/hook"}
    yield Done(f"POST {WEBHOOKS}", http.post(WEBHOOKS, json=hook), "webhook.create")
    one = f"{WEBHOOKS}/{(await http.get(WEBHOOKS)).json()['webhooks'][0]['id']}"
    yield Done(f"POST {WEBHOOKS}/{{id}}/enable", http.post(f"{one}/enable"), "webhook.enable")
    yield Done(f"DELETE {WEBHOOKS}/{{id}}", http.delete(one), "webhook.delete")
    digest = {"form": "slack", "url": "https://127.0.0.1:9/hook"}
    yield Done(f"POST {DIGESTS}", http.post(DIGESTS, json=digest), "digest.create")
    one = f"{DIGESTS}/{(await http.get(DIGESTS)).json()['digests'][0]['id']}"
    yield Done(f"PUT {DIGESTS}/{{id}}", http.put(one, json=digest), "digest.replace")
    yield Done(f"DELETE {DIGESTS}/{{id}}", http.delete(one), "digest.delete")


async def _sources(service: Service) -> AsyncIterator[Done]:
    http, one, place = service.http, f"{SOURCES}/coverage", f"{SOURCES}/{{id}}"
    await http.post(f"{PUSH}/entities", json=component("web"))
    yield Done(f"POST {SOURCES}", http.post(SOURCES, json=pushed()), "data-source.create")
    yield Done(f"PUT {place}", http.put(one, json=pushed()), "data-source.replace")
    yield Done(f"POST {place}/publish", http.post(f"{one}/publish"), "data-source.publish")
    facts = http.post(f"{FACTS}/coverage", json={"items": [item(lines=1)]})
    yield Done(f"POST {FACTS}/{{id}}", facts, "facts.push")
    yield Done(f"DELETE {place}", http.delete(one), "data-source.delete")
    await http.put(f"{SOURCES}/owners", json=of_entities())
    await http.post(f"{SOURCES}/owners/publish")
    yield Done(f"POST {place}/run", http.post(f"{SOURCES}/owners/run"), "data-source.run")
    address, named = {"baseUrl": "https://ci.test"}, f"{CONNECTIONS}/{{name}}"
    made = http.put(f"{CONNECTIONS}/ci", json=address)
    yield Done(f"PUT {named}", made, "connection.create")
    yield Done(f"DELETE {named}", http.delete(f"{CONNECTIONS}/ci"), "connection.delete")


async def _checks(service: Service) -> AsyncIterator[Done]:
    http, one, place = service.http, f"{CHECKS}/owned", f"{CHECKS}/{{id}}"
    document = check("owned", rule=OWNED)
    yield Done(f"POST {CHECKS}", http.post(CHECKS, json=document), "check.create")
    yield Done(f"PUT {place}", http.put(one, json=document), "check.replace")
    yield Done(f"POST {place}/publish", http.post(f"{one}/publish"), "check.publish")
    yield Done(f"DELETE {place}", http.delete(one), "check.delete")
    await http.put(one, json=document)
    async for done in _exemptions(service):
        yield done
    card, place = f"{SCORECARDS}/readiness", f"{SCORECARDS}/{{id}}"
    document = scorecard(entries=["owned"])
    yield Done(f"POST {SCORECARDS}", http.post(SCORECARDS, json=document), "scorecard.create")
    yield Done(f"PUT {place}", http.put(card, json=document), "scorecard.replace")
    yield Done(f"POST {place}/publish", http.post(f"{card}/publish"), "scorecard.publish")
    yield Done(f"DELETE {place}", http.delete(card), "scorecard.delete")


async def _starter(service: Service) -> AsyncIterator[Done]:
    yield Done(f"POST {STARTER}", service.http.post(STARTER), "scorecard.create")


async def _exemptions(service: Service) -> AsyncIterator[Done]:
    http, place = service.http, f"{EXEMPTIONS}/{{id}}"
    document = wish(check="owned")
    asked = http.post(EXEMPTIONS, json=document)
    yield Done(f"POST {EXEMPTIONS}", asked, "exemption.request")
    one = f"{EXEMPTIONS}/{(await http.get(EXEMPTIONS)).json()['exemptions'][0]['id']}"
    yield Done(f"POST {place}/deny", http.post(f"{one}/deny"), "exemption.deny")
    async with service.client(await service.token(owner="user:default/kim")) as other:
        one = f"{EXEMPTIONS}/{(await other.post(EXEMPTIONS, json=document)).json()['id']}"
    yield Done(f"POST {place}/approve", http.post(f"{one}/approve"), "exemption.approve")
    yield Done(f"POST {place}/revoke", http.post(f"{one}/revoke"), "exemption.revoke")


async def _imports(service: Service) -> AsyncIterator[Done]:
    known_to(service)
    asked = service.http.post(f"{IMPORTERS}/fake/run")
    yield Done(f"POST {IMPORTERS}/{{importer}}/run", asked, "import.run")
    imports = Imports(service.state.database)
    for key, action in (("one", "discard"), ("two", "apply")):
        await imports.write(imported(imported_item(key), key=key))
        await imports.write(imported(key=key))
        decided = service.http.post(f"{PARTS}/fake/{key}/{action}")
        yield Done(f"POST {PARTS}/{{importer}}/{{part}}/{action}", decided, f"import.{action}")


async def _provisioning(service: Service) -> AsyncIterator[Done]:
    http = service.http
    for type_, name in (("Users", "userName"), ("Groups", "displayName")):
        place, body = f"/scim/v2/{type_}", {name: "kim"}
        yield Done(f"POST {place}", http.post(place, json=body), "scim.create")
        [made] = (await http.get(place)).json()["Resources"]
        one, route = f"{place}/{made['id']}", f"{place}/{{id}}"
        yield Done(f"PUT {route}", http.put(one, json=body), "scim.replace")
        changes = {"Operations": [{"op": "replace", "path": name, "value": "lee"}]}
        yield Done(f"PATCH {route}", http.patch(one, json=changes), "scim.patch")
        yield Done(f"DELETE {route}", http.delete(one), "scim.delete")
