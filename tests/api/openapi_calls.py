"""At least one good call of every described operation, and refusals, with the status of each."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx2

from factbook.importers import records
from factbook.importers.records import RunOutcome
from factbook.importers.snapshot import ReadingProblem
from tests.api.checking import (
    BADGES,
    CARDS,
    CHECKS,
    DIGESTS,
    EXEMPTIONS,
    OWNED,
    RESULTS,
    SCORECARDS,
    STARTER,
    check,
    evaluated,
    scorecard,
    wish,
)
from tests.api.defining import CONNECTIONS, FACTS, SOURCES, item, of_entities, pushed
from tests.importers.madeup import known_to
from tests.importers.reading import Imports
from tests.importers.reading import item as imported_item
from tests.importers.reading import part as imported
from tests.service import PUSH, Service, component, resource

CATALOG = "/api/catalog"
ENTITIES = f"{CATALOG}/entities"
TOKENS = "/api/access/v1/tokens"
AUDIT = "/api/access/v1/audit"
EVENTS = "/api/events"
WEBHOOKS = f"{EVENTS}/webhooks"
IMPORTERS = "/api/importers/v1"
NOBODY = "6e1f3f0c-0000-4000-8000-000000000000"
FULL = {
    "title": "Payments",
    "description": "Takes money",
    "labels": {"tier": "one"},
    "tags": ["java"],
    "links": [{"url": "https://example.com", "title": "Home", "icon": "web", "type": "page"}],
    "namespace": "shop",
}

Call = tuple[str, int, httpx2.Response]


async def every_call(service: Service) -> AsyncIterator[Call]:
    """Operation, expected status and real answer of each call."""
    parts = (
        _pushes,
        _reads_of_sets,
        _reads,
        _queries,
        _tokens,
        _sources,
        _checks,
        _connections,
        _facts,
        _events,
        _digests,
        _starter,
        _imports,
        _removals,
    )
    for calls in parts:
        async for call in calls(service):
            yield call


async def _pushes(service: Service) -> AsyncIterator[Call]:
    http = service.http
    payments = component("Payments", system="shop", owner=["wrong"]) | {"status": {}}
    payments["metadata"] |= FULL
    sent = {"items": [payments, component("web"), resource("Master Account")]}
    first = f"{PUSH}/sets/first"
    yield "setsPutSet", 200, await http.put(first, json=sent, params={"dryRun": "true"})
    yield "setsPutSet", 200, await http.put(first, json=sent)
    yield "setsPutSet", 200, await http.put(first, json=sent)
    yield "setsPutSet", 400, await http.put(first, json={"items": [{"kind": 1}]})
    yield "setsPutSet", 400, await http.put(first, content=b"{")
    plain = {"content-type": "text/plain"}
    yield "setsPutSet", 415, await http.put(first, content=b"{}", headers=plain)
    yield "setsPutSet", 412, await http.put(first, json=sent, headers={"if-match": '"9"'})
    yield "setsPutSet", 409, await http.put(f"{PUSH}/sets/second", json=sent)
    only = {"items": [component("web")]}
    yield "setsPutSet", 409, await http.put(first, json=only, params={"maxRemovals": "0"})
    read_back = component("api") | {"relations": []}
    yield "setsPostToSet", 200, await http.post(first, json=read_back)
    yield "setsPostToSet", 409, await http.post(f"{PUSH}/sets/second", json=component("api"))
    yield "setsPostEntity", 200, await http.post(f"{PUSH}/entities", json=component("alone"))
    restored = await http.post(f"{first}/revisions/1/restore")
    yield "setsRestoreRevision", 200, restored
    yield "setsRestoreRevision", 404, await http.post(f"{first}/revisions/77/restore")


async def _reads_of_sets(service: Service) -> AsyncIterator[Call]:
    http = service.http
    first = f"{PUSH}/sets/first"
    yield "setsListSets", 200, await http.get(f"{PUSH}/sets")
    yield "setsGetSet", 200, await http.get(first)
    yield "setsGetSet", 200, await http.get(first, params={"limit": "1"})
    yield "setsGetSet", 400, await http.get(first, params={"limit": "0"})
    yield "setsGetSet", 404, await http.get(f"{PUSH}/sets/none")
    yield "setsListRevisions", 200, await http.get(f"{first}/revisions")
    yield "setsListEntities", 200, await http.get(f"{PUSH}/entities")
    yield "setsListEntities", 200, await http.get(f"{PUSH}/entities", params={"set": "first"})
    by_ref = f"{PUSH}/entities/by-ref"
    ref = quote("component:default/alone", safe="")
    alone = await http.get(f"{by_ref}/{ref}")
    yield "setsGetEntityByRef", 200, alone
    yield "setsGetEntityByRef", 400, await http.get(f"{by_ref}/nothing")
    yield "setsGetEntity", 200, await http.get(f"{PUSH}/entities/{alone.json()['id']}")
    yield "setsGetEntity", 404, await http.get(f"{PUSH}/entities/{NOBODY}")


async def _reads(service: Service) -> AsyncIterator[Call]:
    http = service.http
    yield "entitiesListEntities", 200, await http.get(ENTITIES)
    parts = {"fields": "kind,metadata.name,spec.owner", "limit": "1"}
    yield "entitiesListEntities", 200, await http.get(ENTITIES, params=parts)
    yield "entitiesListEntities", 400, await http.get(ENTITIES, params={"order": "up"})
    named = f"{ENTITIES}/by-name/component/shop/payments"
    payments = await http.get(named)
    yield "entitiesGetByName", 200, payments
    yield "entitiesGetByName", 404, await http.get(f"{ENTITIES}/by-name/component/default/none")
    yield "entitiesGetAncestry", 200, await http.get(f"{named}/ancestry")
    uid = payments.json()["metadata"]["uid"]
    yield "entitiesGetByUid", 200, await http.get(f"{ENTITIES}/by-uid/{uid}")
    yield "entitiesGetByUid", 404, await http.get(f"{ENTITIES}/by-uid/{NOBODY}")
    refs = {"entityRefs": ["component:shop/payments", "api:none"]}
    yield "entitiesGetByRefs", 200, await http.post(f"{ENTITIES}/by-refs", json=refs)
    wrong = {"entityRefs": [1]}
    yield "entitiesGetByRefs", 400, await http.post(f"{ENTITIES}/by-refs", json=wrong)
    async with service.client(None) as anonymous:
        yield "entitiesListEntities", 401, await anonymous.get(ENTITIES)
    async with service.client(await service.token("events.read")) as other:
        yield "entitiesListEntities", 403, await other.get(ENTITIES)


async def _queries(service: Service) -> AsyncIterator[Call]:
    http = service.http
    by_query = f"{ENTITIES}/by-query"
    yield "queriesGetByQuery", 200, await http.get(by_query, params={"limit": "1"})
    yield "queriesPostByQuery", 200, await http.post(by_query, json={"limit": 1})
    yield "queriesPostByQuery", 400, await http.post(by_query, json={"query": {"$not": 1}})
    facets = f"{CATALOG}/entity-facets"
    yield "facetsGetFacets", 200, await http.get(facets, params={"facet": "kind"})
    yield "facetsGetFacets", 400, await http.get(facets)
    yield "facetsPostFacets", 200, await http.post(facets, json={"facets": ["kind"]})
    validate = f"{CATALOG}/validate-entity"
    sound: dict[str, Any] = {"entity": component("a"), "location": "url:https://example.com"}
    yield "entityValidationValidateEntity", 200, await http.post(validate, json=sound)
    unsound = sound | {"entity": {}}
    yield "entityValidationValidateEntity", 400, await http.post(validate, json=unsound)
    yield "entityValidationValidateEntity", 400, await http.post(validate, json=[])
    wanted = {"entityRef": "component:shop/payments"}
    yield "refreshingRefresh", 200, await http.post(f"{CATALOG}/refresh", json=wanted)
    none = {"entityRef": "component:none"}
    yield "refreshingRefresh", 404, await http.post(f"{CATALOG}/refresh", json=none)
    yield "locationsListLocations", 200, await http.get(f"{CATALOG}/locations")
    locations = f"{CATALOG}/locations/by-query"
    yield "locationsQueryLocations", 200, await http.post(locations, json={})


async def _tokens(service: Service) -> AsyncIterator[Call]:
    http = service.http
    made = await http.post(TOKENS, json={"name": "new", "expires": "never"})
    yield "tokensCreate", 201, made
    yield "tokensCreate", 400, await http.post(TOKENS, json={"name": ""})
    yield "tokensCreate", 413, await http.post(TOKENS, content=b" " * 1024 * 1024 + b"{}")
    yield "tokensListAll", 200, await http.get(TOKENS)
    yield "tokensRevoke", 204, await http.delete(f"{TOKENS}/{made.json()['id']}")
    yield "tokensRevoke", 404, await http.delete(f"{TOKENS}/{made.json()['id']}")
    yield "auditListRecords", 200, await http.get(AUDIT)
    yield "auditListRecords", 200, await http.get(AUDIT, params={"limit": "1"})
    yield "auditListRecords", 400, await http.get(AUDIT, params={"cursor": "none"})
    yield "auditExport", 200, await http.get(f"{AUDIT}/export", params={"action": "set.push"})
    yield "auditExport", 400, await http.get(f"{AUDIT}/export", params={"after": "none"})


async def _sources(service: Service) -> AsyncIterator[Call]:
    http = service.http
    yield "dataSourcesListAll", 200, await http.get(SOURCES, params={"limit": "1"})
    yield "dataSourcesListAll", 400, await http.get(SOURCES, params={"limit": "0"})
    yield "dataSourcesCreate", 201, await http.post(SOURCES, json=pushed())
    yield "dataSourcesCreate", 409, await http.post(SOURCES, json=pushed())
    yield "dataSourcesCreate", 400, await http.post(SOURCES, json=pushed(version="1.0.0"))
    one, owners = f"{SOURCES}/coverage", f"{SOURCES}/owners"
    whole = pushed(
        lifecycle={"maxItems": 5}, timeout={"minutes": 1}, entityFilter=[{"kind": "api"}]
    )
    yield "dataSourcesReplace", 200, await http.put(one, json=whole)
    yield "dataSourcesReplace", 200, await http.put(owners, json=of_entities())
    yield "dataSourcesReplace", 400, await http.put(f"{SOURCES}/other", json=pushed())
    yield "dataSourcesGet", 200, await http.get(one)
    yield "dataSourcesGet", 200, await http.get(f"{SOURCES}/techdocs")
    yield "dataSourcesGet", 404, await http.get(f"{SOURCES}/none")
    yield "dataSourcesPublish", 200, await http.post(f"{one}/publish")
    await http.put(one, json=pushed(schema={"lines": {"type": "integer"}}))
    yield "dataSourcesPublish", 409, await http.post(f"{one}/publish", json={"force": False})
    yield "dataSourcesPublish", 200, await http.post(f"{one}/publish", json={"force": True})
    yield "dataSourcesGet", 200, await http.get(one)
    trial = {"entity": "component:shop/payments"}
    yield "trialsCreate", 200, await http.post(f"{owners}/test", json=trial)
    yield "trialsCreate", 200, await http.post(f"{one}/test", json=trial)
    nobody = {"entity": "component:nobody"}
    yield "trialsCreate", 404, await http.post(f"{owners}/test", json=nobody)
    wrong = {**trial, "definition": {}}
    yield "trialsCreate", 400, await http.post(f"{owners}/test", json=wrong)
    yield "dataSourcesRun", 202, await http.post(f"{owners}/run")
    yield "dataSourcesRun", 409, await http.post(f"{owners}/run", json={})
    yield "dataSourcesRun", 404, await http.post(f"{owners}/run", json={"entity": "api:none"})
    yield "dataSourcesListRuns", 200, await http.get(f"{owners}/runs")
    yield "dataSourcesGetRun", 200, await http.get(f"{owners}/runs/1")
    yield "dataSourcesDelete", 204, await http.delete(owners)
    yield "dataSourcesDelete", 404, await http.delete(owners)
    yield "dataSourcesDelete", 409, await http.delete(f"{SOURCES}/techdocs")


async def _checks(service: Service) -> AsyncIterator[Call]:
    http, one = service.http, f"{CHECKS}/owned"
    whole = check(
        "owned",
        rule=OWNED,
        description="Somebody answers for it",
        owner="group:team-a",
        appliesTo={"kind": "component"},
        applicableWhen=OWNED,
        onUnknown="fail",
        messages={"fail": "Nobody owns {{ metadata.name }}."},
        fix={"link": "https://example.com"},
        severity="advisory",
        effectiveFrom="2027-01-01",
        labels=["ownership"],
        tests=[{"entity": {"spec": {"owner": "team-a"}}, "expect": "pass"}],
    )
    yield "checksCreate", 201, await http.post(CHECKS, json=whole)
    yield "checksCreate", 409, await http.post(CHECKS, json=whole)
    yield "checksCreate", 400, await http.post(CHECKS, json=check(rule={"all": []}))
    yield "checksListAll", 200, await http.get(CHECKS, params={"limit": "1"})
    yield "checksListAll", 400, await http.get(CHECKS, params={"limit": "0"})
    yield "checksPublish", 200, await http.post(f"{one}/publish")
    yield "checksReplace", 200, await http.put(one, json=check("owned", rule=OWNED))
    yield "checksReplace", 400, await http.put(f"{CHECKS}/other", json=whole)
    old = {"if-match": '"old"'}
    yield "checksReplace", 412, await http.put(one, json=whole, headers=old)
    yield "checksGet", 200, await http.get(one)
    yield "checksGet", 404, await http.get(f"{CHECKS}/none")
    yield "checksListVersions", 200, await http.get(f"{one}/versions")
    rule = {"source": "checks", "fact": "owned", "operator": "equal", "value": "pass"}
    await http.put(f"{CHECKS}/reader", json=check("reader", rule=rule))
    yield "checksDelete", 409, await http.delete(one)
    yield "checksDelete", 204, await http.delete(f"{CHECKS}/reader")
    yield "checksDelete", 404, await http.delete(f"{CHECKS}/reader")
    async for call in _scorecards(service):
        yield call


async def _scorecards(service: Service) -> AsyncIterator[Call]:
    http, one = service.http, f"{SCORECARDS}/readiness"
    whole = scorecard(
        entries=[{"check": "owned", "level": "bronze", "weight": 2}],
        description="Ready for production",
        owner="group:team-a",
        appliesTo=[{"kind": "component"}],
        exemptions={"maxDays": 365},
        public=True,
        target={"level": "silver", "by": "2027-06-30"},
        effectiveFrom="2026-01-01",
        minimumCoverage=0.25,
    )
    yield "scorecardsCreate", 201, await http.post(SCORECARDS, json=whole)
    yield "scorecardsCreate", 409, await http.post(SCORECARDS, json=whole)
    yield "scorecardsCreate", 400, await http.post(SCORECARDS, json=scorecard(entries=["none"]))
    yield "scorecardsListAll", 200, await http.get(SCORECARDS, params={"limit": "1"})
    yield "scorecardsPublish", 200, await http.post(f"{one}/publish")
    yield "scorecardsPublish", 404, await http.post(f"{SCORECARDS}/none/publish")
    again = scorecard(entries=["owned"])
    yield "scorecardsReplace", 200, await http.put(one, json=again)
    old = {"if-match": '"old"'}
    yield "scorecardsReplace", 412, await http.put(one, json=whole, headers=old)
    yield "scorecardsGet", 200, await http.get(one)
    yield "scorecardsListVersions", 200, await http.get(f"{one}/versions")
    other = f"{SCORECARDS}/other"
    await http.put(other, json=scorecard("other", entries=["owned"]))
    yield "scorecardsDelete", 204, await http.delete(other)
    yield "scorecardsDelete", 404, await http.delete(other)
    async for call in _exemptions(service):
        yield call
    async for call in _results(service):
        yield call


async def _exemptions(service: Service) -> AsyncIterator[Call]:
    http, asked = service.http, wish(check="owned", entity="component:alone")
    made = await http.post(EXEMPTIONS, json={**asked, "link": "https://example.com/1"})
    yield "exemptionsCreate", 201, made
    yield "exemptionsCreate", 409, await http.post(EXEMPTIONS, json=asked)
    yield "exemptionsCreate", 400, await http.post(EXEMPTIONS, json={**asked, "until": None})
    yield "exemptionsCreate", 404, await http.post(EXEMPTIONS, json=wish(check="none"))
    yield "exemptionsListAll", 200, await http.get(EXEMPTIONS, params={"state": "requested"})
    yield "exemptionsListAll", 400, await http.get(EXEMPTIONS, params={"state": "open"})
    one = f"{EXEMPTIONS}/{made.json()['id']}"
    yield "exemptionsGet", 200, await http.get(one)
    yield "exemptionsGet", 404, await http.get(f"{EXEMPTIONS}/none")
    yield "exemptionsApprove", 403, await http.post(f"{one}/approve")
    async with service.client(await service.token(owner="user:default/approver")) as other:
        yield "exemptionsApprove", 200, await other.post(f"{one}/approve", json={"comment": "Ok"})
        yield "exemptionsDeny", 409, await other.post(f"{one}/deny")
        yield "exemptionsRevoke", 200, await other.post(f"{one}/revoke")
        again = (await http.post(EXEMPTIONS, json=asked)).json()["id"]
        yield "exemptionsDeny", 200, await other.post(f"{EXEMPTIONS}/{again}/deny")
        yield "exemptionsRevoke", 409, await other.post(f"{EXEMPTIONS}/{again}/revoke")


async def _results(service: Service) -> AsyncIterator[Call]:
    http = service.http
    await evaluated(service)
    filters = {"checkIds": "owned", "changedSince": "2026-01-01T00:00:00Z"}
    yield "checkResultsListAll", 200, await http.get(RESULTS, params={"limit": "1"})
    yield "checkResultsListAll", 200, await http.get(RESULTS, params=filters)
    yield "checkResultsListAll", 400, await http.get(RESULTS, params={"state": "bad"})
    nobody = {"entity": "component:nobody"}
    yield "checkResultsListAll", 404, await http.get(RESULTS, params=nobody)
    yield "checkResultsExport", 200, await http.get(f"{RESULTS}.csv")
    yield "checkResultsOverview", 200, await http.get(f"{RESULTS}/owned")
    yield "checkResultsOverview", 404, await http.get(f"{RESULTS}/none")
    one = f"{RESULTS}/owned/component:default/alone"
    yield "checkResultsGet", 200, await http.get(one)
    yield "checkResultsGet", 404, await http.get(f"{RESULTS}/owned/component:none")
    yield "checkResultsHistory", 200, await http.get(f"{one}/history")
    preview = {"checkId": "owned", "changes": {"rule": {"not": OWNED}}, "limit": 1}
    yield "previewsCreate", 200, await http.post(f"{CHECKS}/preview", json=preview)
    yield "previewsCreate", 400, await http.post(f"{CHECKS}/preview", json={})
    none = {"checkId": "none"}
    yield "previewsCreate", 404, await http.post(f"{CHECKS}/preview", json=none)
    items = {"items": [component("alone"), component("new")], "paths": ["README.md"]}
    yield "entityPreviewsCreate", 200, await http.post(f"{RESULTS}/preview", json=items)
    yield "entityPreviewsCreate", 400, await http.post(f"{RESULTS}/preview", json={})
    public = scorecard(entries=["owned"], public=True)
    await http.put(f"{SCORECARDS}/readiness?publish=true", json=public)
    await evaluated(service)
    badge = f"{BADGES}/readiness/component:default/alone"
    yield "badgesImage", 200, await http.get(f"{badge}.svg")
    yield "badgesShields", 200, await http.get(f"{badge}.json")
    yield "badgesShields", 404, await http.get(f"{BADGES}/readiness/component:default/x.json")
    dry = {"dryRun": "true", "checks": "true"}
    tried = await http.put(f"{PUSH}/sets/tried", json={"items": [component("tried")]}, params=dry)
    yield "setsPutSet", 200, tried
    card, alone = f"{CARDS}/readiness", {"entity": "component:alone"}
    yield "scorecardResultsListAll", 200, await http.get(CARDS)
    yield "scorecardResultsGet", 200, await http.get(card, params={"limit": "1"})
    yield "scorecardResultsGet", 400, await http.get(card, params={"level": "gold"})
    yield "scorecardResultsGet", 404, await http.get(f"{CARDS}/none")
    yield "scorecardResultsExport", 200, await http.get(f"{card}.csv")
    yield "scorecardResultsRollUp", 200, await http.get(f"{card}/rollup", params={"by": "kind"})
    yield "scorecardResultsFollow", 200, await http.get(f"{card}/trend", params={"step": "7"})
    yield "scorecardResultsPlan", 200, await http.get(f"{card}/next-steps", params=alone)
    yield "scorecardResultsPlan", 400, await http.get(f"{card}/next-steps")


async def _connections(service: Service) -> AsyncIterator[Call]:
    http, one = service.http, f"{CONNECTIONS}/ci"
    address = {"baseUrl": "https://ci.test"}
    body = {**address, "headers": {"authorization": "Bearer abc"}}
    yield "connectionsPut", 200, await http.put(one, json=body)
    yield "connectionsPut", 400, await http.put(one, json={**address, "headers": {"host": "x"}})
    config = {"id": "asking", "connection": "ci", "path": "/x"}
    handler = {"type": "http", "config": config}
    await http.put(f"{SOURCES}/asking", json=of_entities("asking", handlerDefinition=handler))
    yield "connectionsListAll", 200, await http.get(CONNECTIONS)
    yield "connectionsGet", 200, await http.get(one)
    yield "connectionsGet", 404, await http.get(f"{CONNECTIONS}/none")
    yield "connectionsDelete", 409, await http.delete(one)
    await http.delete(f"{SOURCES}/asking")
    yield "connectionsDelete", 204, await http.delete(one)
    yield "connectionsDelete", 404, await http.delete(one)


async def _facts(service: Service) -> AsyncIterator[Call]:
    http = service.http
    to = f"{FACTS}/coverage"
    items = [item("component:shop/payments", lines=1, nope=2), item("component:nobody", lines=1)]
    yield "factsPush", 200, await http.post(to, json={"items": items})
    yield "factsPush", 400, await http.post(to, json={"items": []})
    yield "factsPush", 404, await http.post(f"{FACTS}/none", json={"items": items})
    yield "factsPush", 409, await http.post(f"{FACTS}/techdocs", json={"items": items})
    yield "factsLatest", 200, await http.get(to)
    yield "factsLatest", 200, await http.get(f"{FACTS}/techdocs", params={"limit": "1"})
    known = {"entity": "component:shop/payments"}
    yield "factsLatest", 200, await http.get(to, params=known)
    yield "factsLatest", 404, await http.get(to, params={"entity": "component:nobody"})
    yield "factsPast", 200, await http.get(FACTS, params=known)
    lines = {"fact": "lines"}
    for id_, path in (
        ("distributionsShow", "distribution"),
        ("distributionsValues", "values"),
        ("distributionsExport", "values.csv"),
    ):
        yield id_, 200, await http.get(f"{to}/{path}", params=lines)
        yield id_, 400, await http.get(f"{to}/{path}", params=lines | {"owner": "group:"})
        yield id_, 400, await http.get(f"{to}/{path}")
        yield id_, 404, await http.get(f"{to}/{path}", params={"fact": "none"})
    by = {"fact": "hasOwner", "by": "owner"}
    yield (
        "distributionsShow",
        200,
        await http.get(f"{FACTS}/entity-metadata/distribution", params=by),
    )
    yield "factsPast", 400, await http.get(FACTS)
    yield "factsPast", 404, await http.get(FACTS, params={"entity": "component:nobody"})


async def _imports(service: Service) -> AsyncIterator[Call]:
    http, imports = service.http, Imports(service.state.database)
    problem = ReadingProblem("github.com/acme/shop", "is not valid", "catalog-info.yaml", 3)
    for part in ("one", "two"):
        await imports.write(imported(imported_item(part), key=part, problems=[problem]))
        await imports.write(imported(key=part))
    known_to(service)
    yield "importersListAll", 200, await http.get(f"{IMPORTERS}/importers")
    yield "importersRun", 202, await http.post(f"{IMPORTERS}/importers/fake/run")
    yield "importersRun", 404, await http.post(f"{IMPORTERS}/importers/none/run")
    outcome = RunOutcome("failed", "no such host", 1, 4_999)
    now = service.time()
    run = await service.state.database.write(lambda tx: records.request_run(tx, "fake", now))
    begun = await service.state.database.write(
        lambda tx: records.begin_import_run(tx, "fake", run, "process", now)
    )
    assert begun is not None
    await service.state.database.write(lambda tx: records.end_import_run(tx, begun, outcome, now))
    yield "importersListAll", 200, await http.get(f"{IMPORTERS}/importers")
    yield "importersGetOne", 200, await http.get(f"{IMPORTERS}/importers/fake")
    yield "importersGetOne", 404, await http.get(f"{IMPORTERS}/importers/none")
    yield "partsListParts", 200, await http.get(f"{IMPORTERS}/parts")
    one, two = (f"{IMPORTERS}/parts/fake/{part}" for part in ("one", "two"))
    yield "partsGetPart", 200, await http.get(one)
    yield "partsGetPart", 404, await http.get(f"{IMPORTERS}/parts/fake/none")
    yield "setsGetSet", 200, await http.get(f"{PUSH}/sets/{quote('import/fake/one', safe='')}")
    old = {"if-match": '"1"'}
    yield "partsDiscardHeld", 412, await http.post(f"{one}/discard", headers=old)
    yield "partsApplyHeld", 412, await http.post(f"{two}/apply", headers=old)
    yield "partsDiscardHeld", 200, await http.post(f"{one}/discard")
    yield "partsDiscardHeld", 404, await http.post(f"{one}/discard")
    yield "partsApplyHeld", 200, await http.post(f"{two}/apply")
    yield "partsApplyHeld", 404, await http.post(f"{two}/apply")


async def _events(service: Service) -> AsyncIterator[Call]:
    http = service.http
    yield "eventsListEvents", 200, await http.get(EVENTS, params={"limit": "500"})
    yield "eventsListEvents", 200, await http.get(EVENTS, params={"after": "now"})
    yield "eventsListEvents", 400, await http.get(EVENTS, params={"after": "then"})
    yield "eventsListEvents", 410, await http.get(EVENTS, params={"after": "999999.0"})
    # Nothing listens there.
    body = {"url": "https://127.0.0.1:9/hook", "types": ["set.replaced"]}
    made = await http.post(WEBHOOKS, json=body)
    yield "webhooksCreate", 201, made
    yield "webhooksCreate", 400, await http.post(WEBHOOKS, json={"url": "https://10.1.2.3/"})
    one = f"{WEBHOOKS}/{made.json()['id']}"
    yield "webhooksListAll", 200, await http.get(WEBHOOKS)
    yield "webhooksGet", 200, await http.get(one)
    yield "webhooksGet", 404, await http.get(f"{WEBHOOKS}/none")
    yield "webhooksEnable", 200, await http.post(f"{one}/enable")
    yield "webhooksTest", 200, await http.post(f"{one}/test")
    yield "webhooksDelete", 204, await http.delete(one)
    yield "webhooksDelete", 404, await http.delete(one)


async def _starter(service: Service) -> AsyncIterator[Call]:
    yield "starterScorecardGet", 200, await service.http.get(STARTER)
    yield "starterScorecardAdopt", 200, await service.http.post(STARTER)


async def _digests(service: Service) -> AsyncIterator[Call]:
    http = service.http
    # Nothing listens there.
    body = {"owner": "group:shop", "form": "slack", "url": "https://127.0.0.1:9/hook"}
    made = await http.post(DIGESTS, json=body)
    yield "digestsCreate", 201, made
    yield "digestsCreate", 400, await http.post(DIGESTS, json={**body, "timeZone": "Nowhere"})
    one = f"{DIGESTS}/{made.json()['id']}"
    yield "digestsListAll", 200, await http.get(DIGESTS)
    yield "digestsGet", 200, await http.get(one)
    yield "digestsGet", 404, await http.get(f"{DIGESTS}/none")
    daily = {"form": "teams", "cadence": "daily", "hour": 6, "timeZone": "Europe/Paris"}
    yield "digestsReplace", 200, await http.put(one, json=daily)
    yield "digestsReplace", 400, await http.put(one, json={**daily, "hour": 24})
    yield "digestsReplace", 404, await http.put(f"{DIGESTS}/none", json=daily)
    yield "digestsTest", 200, await http.post(f"{one}/test")
    yield "digestsTest", 404, await http.post(f"{DIGESTS}/none/test")
    yield "digestsDelete", 204, await http.delete(one)
    yield "digestsDelete", 404, await http.delete(one)


async def _removals(service: Service) -> AsyncIterator[Call]:
    http = service.http
    items = (await http.get(f"{PUSH}/entities")).json()["items"]
    one, other = items[0]["id"], items[1]["id"]
    yield "setsDeleteEntity", 204, await http.delete(f"{PUSH}/entities/{one}")
    yield "setsDeleteEntity", 404, await http.delete(f"{PUSH}/entities/{one}")
    yield "entitiesDeleteByUid", 204, await http.delete(f"{ENTITIES}/by-uid/{other}")
    yield "setsDeleteSet", 200, await http.delete(f"{PUSH}/sets/first", params={"dryRun": "true"})
    yield "setsDeleteSet", 200, await http.delete(f"{PUSH}/sets/first")
