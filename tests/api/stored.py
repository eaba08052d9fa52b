"""What others have stored before a token that only writes comes, and all that it may try.

Whatever others stored has the canary in it, but for what a caller has to name to reach it at all.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, NamedTuple

import httpx2

from factbook.auth.permissions import TOKEN_MANAGE
from tests.api.audited import CATALOG, TOKENS, WEBHOOKS
from tests.api.checking import (
    CHECKS,
    DIGESTS,
    EXEMPTIONS,
    SCORECARDS,
    STARTER,
    check,
    put,
    scorecard,
    wish,
)
from tests.api.defining import CONNECTIONS, FACTS, SOURCES, define, item, of_entities, pushed
from tests.importers.madeup import known_to
from tests.importers.reading import Imports
from tests.importers.reading import item as imported_item
from tests.importers.reading import part as imported
from tests.service import PUSH, Service, component

CANARY: Final = "canary7f3a"
VAULT: Final = f"{CANARY}-vault"
IMPORTERS: Final = "/api/importers/v1"
SCIM: Final = "/scim/v2"
EARLIER: Final = "2026-11-21T11:00:00+00:00"

_SETS = f"{PUSH}/sets"
_SET = f"{_SETS}/{{set_id}}"
_RESTORE = f"{_SET}/revisions/{{number}}/restore"
_SOURCE = f"{SOURCES}/{{id}}"


class Attempt(NamedTuple):
    """A call of a route; `shown`: who may read is answered with something that others stored.

    `unread` is the status for who may not read, if that is another.
    """

    route: str  # its method and path, as the table has them
    path: str
    body: Any = None
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    status: int = 200
    shown: bool = False
    unread: int | None = None

    @property
    def method(self) -> str:
        return self.route.partition(" ")[0]


def told(name: str) -> dict[str, Any]:
    """A component that says the canary wherever it can, but for its name."""
    entity = component(name, owner=CANARY, system=CANARY, dependsOn=[f"component:{CANARY}"])
    entity["metadata"] |= {
        "title": CANARY,
        "description": CANARY,
        "labels": {CANARY: CANARY},
        "annotations": {f"{CANARY}.io/x": CANARY},
        "tags": [CANARY],
        "links": [{"url": f"https://{CANARY}.test", "title": CANARY}],
    }
    return entity


async def store(service: Service, lenient: Service) -> None:
    """Store what the attempts meet; `lenient` has wider rules than the service."""
    for set_id in ("tried", "emptied", "dropped", "guarded", "restored", "grown", "replaced"):
        await _accepted(service.push(set_id, told(f"{CANARY}-{set_id}"), component(f"{set_id}-a")))
        await _accepted(service.push(set_id, told(f"{CANARY}-{set_id}")))
    await _accepted(service.push(VAULT, told("held"), told("held-too"), told("taken")))
    await _accepted(service.push("lost", told(f"{CANARY}-lost")))
    kept = (told("held"), told("held-too"), told("taken"), told(f"{CANARY}-lost"))
    await _accepted(service.push(VAULT, *kept, onConflict="take"))
    await _accepted(lenient.push("loose", told(f"{CANARY} loose")))
    await _accepted(lenient.push("loose", told(f"{CANARY}-loose")))
    await _accepted(service.push("plain", component("plain"), component("gone"), component("lone")))
    known_to(service)
    imports = Imports(service.state.database)
    for key in ("one", "two"):
        await imports.write(imported(imported_item(f"{CANARY}-{key}"), key=key))
        await imports.write(imported(key=key))
    await _define(service)
    await _check(service)
    token = {"name": CANARY, "permissions": ["catalog.entity.read"]}
    answer = await service.http.post(TOKENS, json=token)
    assert answer.status_code == 201, answer.text


async def _define(service: Service) -> None:
    told = {"title": CANARY, "description": CANARY}
    fact = {"type": "string", "description": CANARY, "unit": CANARY}
    schema = {"lines": {"type": "integer"}, CANARY: fact}
    for id_ in ("coverage", "covered", "counted", "replaced", "forced"):
        await define(service, pushed(id_, **told, schema=schema))
    only = [{"spec.owner": CANARY}]
    await define(service, pushed("narrow", **told, entityFilter=only))
    await define(service, of_entities(**told))
    await define(service, of_entities("filtered", **told, entityFilter=only))
    pending = pushed("forced", **told, schema={"lines": {"type": "integer"}})
    await define(service, pending, publish=False)
    pending = pushed("counted", **told, schema={"lines": {"type": "string"}, CANARY: fact})
    await define(service, pending, publish=False)
    for name in ("ci", "used"):
        made = await service.http.put(f"{CONNECTIONS}/{name}", json={"baseUrl": "https://ci.test"})
        assert made.status_code == 200, made.text
        await define(service, _asking(f"{CANARY}-{name}", name))
    await define(service, _asking("broken", f"{CANARY}-conn"))
    facts = item("component:default/plain", EARLIER, **{CANARY: CANARY})
    answer = await service.http.post(f"{FACTS}/coverage", json={"items": [facts]})
    assert answer.json()["acceptedItems"] == 1, answer.text


def _asking(id_: str, connection: str) -> dict[str, Any]:
    config = {"id": id_, "connection": connection, "path": f"/{CANARY}"}
    return {
        "id": id_,
        "title": CANARY,
        "handlerDefinition": {"type": "http", "config": config},
        "schema": {"ok": {"type": "boolean", "extract": {"jmespath": "ok"}}},
    }


async def _check(service: Service) -> None:
    told = {"title": CANARY, "messages": {"fail": CANARY}, "labels": [CANARY]}
    for id_ in ("covered", "counted", "read"):
        answer = await put(service, check(id_, **told), publish=id_ == "covered")
        assert answer.status_code == 200, answer.text
    card = scorecard(title=CANARY, description=CANARY)
    answer = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=card)
    assert answer.status_code == 200, answer.text
    rule = {"source": "checks", "fact": "read", "operator": "equal", "value": "pass"}
    answer = await put(service, check(f"{CANARY}-reader", rule=rule))
    assert answer.status_code == 200, answer.text


async def _accepted(answer: Any) -> None:
    answer = await answer
    assert answer.status_code == 200, answer.text


async def attempts(service: Service) -> AsyncIterator[Attempt]:
    """Each is to be made before the next is asked for."""
    for part in (
        *_of_sets(),
        *_of_imports(),
        *_of_sources(),
        *_of_checks(),
        *_never_done(),
    ):
        yield part
    async for one in _of_ids(service):
        yield one
    async for one in _of_starter(service):
        yield one
    async for one in _of_exemptions(service):
        yield one
    async for one in _of_people(service):
        yield one


def _of_sets() -> list[Attempt]:
    new, held = component("new"), component("held")
    dry, take, old = {"dryRun": "true"}, {"onConflict": "take"}, {"if-match": '"1"'}
    put, post, delete = f"PUT {_SET}", f"POST {_SET}", f"DELETE {_SET}"
    restore, entities = f"POST {_RESTORE}", f"POST {PUSH}/entities"
    return [
        Attempt(put, f"{_SETS}/tried", {"items": [new]}, dry, shown=True),
        Attempt(put, f"{_SETS}/replaced", {"items": [new]}),
        Attempt(put, f"{_SETS}/guarded", {"items": []}, {"maxRemovals": "0"}, status=409),
        Attempt(put, f"{_SETS}/guarded", {"items": []}, headers=old, status=412),
        Attempt(put, f"{_SETS}/mine", {"items": [held]}, status=409, shown=True),
        Attempt(put, f"{_SETS}/mine", {"items": [held]}, dry, status=409, shown=True),
        Attempt(put, f"{_SETS}/mine", {"items": [held]}, take),
        Attempt(put, f"{_SETS}/mine", {"items": [{"kind": "x"}]}, status=400),
        Attempt(post, f"{_SETS}/grown", component("grown")),
        Attempt(post, f"{_SETS}/grown", component("taken"), status=409, shown=True),
        Attempt(post, f"{_SETS}/grown", component("taken"), headers=old, status=412),
        Attempt(post, f"{_SETS}/grown", component("taken"), take),
        Attempt(entities, f"{PUSH}/entities", component("apart")),
        Attempt(entities, f"{PUSH}/entities", component("held-too"), status=409, shown=True),
        Attempt(entities, f"{PUSH}/entities", component("held-too"), take),
        Attempt(delete, f"{_SETS}/tried", query=dry, shown=True),
        Attempt(delete, f"{_SETS}/guarded", query={"maxRemovals": "0"}, status=409),
        Attempt(delete, f"{_SETS}/emptied"),
        Attempt(restore, f"{_SETS}/restored/revisions/2/restore", shown=True),
        Attempt(restore, f"{_SETS}/dropped/revisions/1/restore", shown=True),
        Attempt(restore, f"{_SETS}/lost/revisions/1/restore", status=409, shown=True),
        Attempt(restore, f"{_SETS}/lost/revisions/1/restore", query=take, shown=True),
        Attempt(restore, f"{_SETS}/loose/revisions/1/restore", status=400),
        Attempt(restore, f"{_SETS}/guarded/revisions/1/restore", headers=old, status=412),
        Attempt(restore, f"{_SETS}/guarded/revisions/9/restore", status=404),
    ]


def _of_imports() -> list[Attempt]:
    one = f"POST {IMPORTERS}/parts/{{importer}}/{{part}}"
    run = f"{IMPORTERS}/importers/{{importer}}/run"
    events = f"{IMPORTERS}/importers/{{importer}}/events"
    return [
        Attempt(f"POST {run}", run.replace("{importer}", "fake"), status=202),
        Attempt(f"{one}/apply", f"{IMPORTERS}/parts/fake/one/apply"),
        Attempt(f"{one}/discard", f"{IMPORTERS}/parts/fake/two/discard"),
        Attempt(f"POST {events}", events.replace("{importer}", "fake"), {}, status=403),
    ]


def _of_sources() -> list[Attempt]:
    post, put, delete = f"POST {SOURCES}", f"PUT {_SOURCE}", f"DELETE {_SOURCE}"
    publish, test, run = (f"POST {_SOURCE}/{what}" for what in ("publish", "test", "run"))
    facts, connection = f"POST {FACTS}/{{id}}", f"{CONNECTIONS}/{{name}}"
    own = {"entity": "component:plain", "definition": of_entities("owners")}
    address = {"baseUrl": "https://ci.test"}
    given = [
        item("component:default/plain", lines="x"),
        item("component:default/plain", EARLIER, lines=2),
        item("component:default/none", lines=1),
        item("component:default/plain", lines=1, other=1),
    ]
    return [
        Attempt(post, SOURCES, pushed("fresh"), status=201),
        Attempt(post, SOURCES, pushed("coverage"), status=409),
        Attempt(put, f"{SOURCES}/replaced", pushed("replaced"), shown=True),
        Attempt(put, f"{SOURCES}/replaced", pushed("other"), status=400),
        Attempt(publish, f"{SOURCES}/covered/publish", shown=True),
        Attempt(publish, f"{SOURCES}/forced/publish", status=409, shown=True),
        Attempt(publish, f"{SOURCES}/counted/publish", {"force": True}, shown=True),
        Attempt(test, f"{SOURCES}/owners/test", own),
        Attempt(run, f"{SOURCES}/owners/run", status=202),
        Attempt(run, f"{SOURCES}/broken/run", status=409, shown=True),
        Attempt(run, f"{SOURCES}/filtered/run", {"entity": "component:plain"}, status=409),
        Attempt(run, f"{SOURCES}/coverage/run", status=409),
        Attempt(run, f"{SOURCES}/entity-metadata/run", status=409),
        Attempt(facts, f"{FACTS}/coverage", {"items": given}),
        Attempt(facts, f"{FACTS}/narrow", {"items": [item("component:plain", lines=1)]}),
        Attempt(facts, f"{FACTS}/owners", {"items": given}, status=409),
        Attempt(delete, f"{SOURCES}/covered", status=204),
        Attempt(f"PUT {connection}", f"{CONNECTIONS}/ci", address, shown=True),
        Attempt(f"DELETE {connection}", f"{CONNECTIONS}/used", status=409, shown=True),
    ]


def _of_checks() -> list[Attempt]:
    place = f"{CHECKS}/{{id}}"
    post, put, publish, delete = (
        f"POST {CHECKS}",
        f"PUT {place}",
        f"POST {place}/publish",
        f"DELETE {place}",
    )
    near = {"source": "coverage", "fact": f"{CANARY[:-1]}b", "operator": "isKnown"}
    old = {"if-match": '"1"'}
    return [
        Attempt(post, CHECKS, check("fresh"), status=201, unread=403),
        Attempt(post, CHECKS, check("covered"), status=409, unread=403),
        Attempt(post, CHECKS, check("near", rule=near), status=400, shown=True, unread=403),
        Attempt(put, f"{CHECKS}/covered", check(), shown=True, unread=403),
        Attempt(put, f"{CHECKS}/covered", check(), headers=old, status=412, unread=403),
        Attempt(publish, f"{CHECKS}/counted/publish", shown=True),
        Attempt(delete, f"{CHECKS}/read", status=409, shown=True),
        Attempt(delete, f"{CHECKS}/counted", status=204),
        *_of_scorecards(),
    ]


def _of_scorecards() -> list[Attempt]:
    place = f"{SCORECARDS}/{{id}}"
    card, old = f"{SCORECARDS}/readiness", {"if-match": '"1"'}
    return [
        Attempt(f"POST {SCORECARDS}", SCORECARDS, scorecard("fresh"), status=201),
        Attempt(f"POST {SCORECARDS}", SCORECARDS, scorecard(), status=409),
        Attempt(f"PUT {place}", card, scorecard(), shown=True),
        Attempt(f"PUT {place}", card, scorecard(), headers=old, status=412),
        Attempt(f"POST {place}/publish", f"{card}/publish", shown=False),
        Attempt(f"DELETE {place}", card, status=204),
    ]


async def _of_ids(service: Service) -> AsyncIterator[Attempt]:
    refresh, revoke = f"POST {CATALOG}/refresh", f"DELETE {TOKENS}/{{id}}"
    yield Attempt(refresh, f"{CATALOG}/refresh", {"entityRef": "component:plain"})
    yield Attempt(refresh, f"{CATALOG}/refresh", {"entityRef": "component:none"}, status=404)
    uids = {
        one["entityRef"]: one["id"] for one in (await _json(service, f"{_SETS}/plain"))["items"]
    }
    one, other = uids["component:default/gone"], uids["component:default/lone"]
    yield Attempt(f"DELETE {PUSH}/entities/{{uid}}", f"{PUSH}/entities/{one}", status=204)
    yield Attempt(f"DELETE {PUSH}/entities/{{uid}}", f"{PUSH}/entities/{one}", status=404)
    by_uid = f"{CATALOG}/entities/by-uid"
    yield Attempt(f"DELETE {by_uid}/{{uid}}", f"{by_uid}/{other}", status=204)
    yield Attempt(
        f"POST {TOKENS}", TOKENS, {"name": "mine", "permissions": [TOKEN_MANAGE]}, status=201
    )
    tokens = (await _json(service, TOKENS))["tokens"]
    [id_] = [token["id"] for token in tokens if token["name"] == CANARY]
    yield Attempt(revoke, f"{TOKENS}/{id_}", status=204)
    yield Attempt(f"POST {WEBHOOKS}", WEBHOOKS, {"url": "https://127.0.0.1:9/hook"}, status=201)
    hook = f"{WEBHOOKS}/{(await _json(service, WEBHOOKS))['webhooks'][0]['id']}"
    yield Attempt(f"POST {WEBHOOKS}/{{id}}/enable", f"{hook}/enable")
    yield Attempt(f"POST {WEBHOOKS}/{{id}}/test", f"{hook}/test")
    yield Attempt(f"DELETE {WEBHOOKS}/{{id}}", hook, status=204)
    wanted = {"form": "slack", "url": "https://127.0.0.1:9/hook"}
    yield Attempt(f"POST {DIGESTS}", DIGESTS, wanted, status=201)
    sent = f"{DIGESTS}/{(await _json(service, DIGESTS))['digests'][0]['id']}"
    yield Attempt(f"PUT {DIGESTS}/{{id}}", sent, wanted)
    yield Attempt(f"POST {DIGESTS}/{{id}}/test", f"{sent}/test")
    yield Attempt(f"DELETE {DIGESTS}/{{id}}", sent, status=204)


async def _of_starter(service: Service) -> AsyncIterator[Attempt]:
    yield Attempt(f"POST {STARTER}", STARTER)


async def _of_exemptions(service: Service) -> AsyncIterator[Attempt]:
    asked, place = wish(check="read", entity="component:plain"), f"{EXEMPTIONS}/{{id}}"
    yield Attempt(f"POST {EXEMPTIONS}", EXEMPTIONS, asked, status=403)
    made = await service.http.post(EXEMPTIONS, json=asked)
    for decision in ("deny", "approve", "revoke"):
        path = f"{EXEMPTIONS}/{made.json()['id']}/{decision}"
        yield Attempt(f"POST {place}/{decision}", path, status=403)


async def _of_people(service: Service) -> AsyncIterator[Attempt]:
    for place, name in ((f"{SCIM}/Users", "userName"), (f"{SCIM}/Groups", "displayName")):
        yield Attempt(f"POST {place}", place, {name: "kim"}, status=201)
        [made] = (await _json(service, place))["Resources"]
        one, route = f"{place}/{made['id']}", f"{place}/{{id}}"
        change = {"Operations": [{"op": "replace", "path": name, "value": "held"}]}
        yield Attempt(f"PUT {route}", one, {name: "lee"})
        yield Attempt(f"PATCH {route}", one, change)
        yield Attempt(f"DELETE {route}", one, status=204)


def _never_done() -> list[Attempt]:
    locations, slash = f"{CATALOG}/locations", "{set_id:path}"
    return [
        Attempt(f"POST {locations}", locations, status=501),
        Attempt(f"PUT {locations}/{{id}}", f"{locations}/x", status=501),
        Attempt(f"DELETE {locations}/{{id}}", f"{locations}/x", status=501),
        *(
            Attempt(f"{method} {_SETS}/{slash}", f"{_SETS}/a/b", status=400)
            for method in ("PUT", "POST", "DELETE")
        ),
        *(
            Attempt(f"{method} {SCIM}/{{rest:path}}", f"{SCIM}/Devices", {}, status=404)
            for method in ("PUT", "POST", "PATCH", "DELETE")
        ),
    ]


async def _json(service: Service, path: str) -> Any:
    answer: httpx2.Response = await service.http.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()
