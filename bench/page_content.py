"""What the large catalog has beside its entities: sources, checks, teams of teams, exemptions."""

import random
import time
from typing import Any, Final

import msgspec

from bench import catalog, facts_across, scored
from bench.catalog import Key
from bench.person import Person
from bench.run import Run
from bench.service import Factbook

SOURCE: Final = "latency"  # with a past of two months about one entity
DIVISION: Final = "engineering"  # the group above all teams
DOMAIN: Final = "shop"  # the domain of all systems
_SOURCES: Final = 300
_KNOWN: Final = 300  # entities that each of them has facts about
_OF_FIRST: Final = 20  # sources that have facts about the first entity
_FLIPPED: Final = 2_000
_EXEMPTIONS: Final = 100
_PUSHES: Final = 60
_DAY: Final = 86_400
_API: Final = "/api/tech-insights/v1"


def fill(run: Run, service: Factbook, person: Person) -> None:
    """Add everything that pages show to a catalog of entities; the person is in the first team."""
    keys = catalog.keys(run.options.large)
    service.push("organisation", catalog.body(_organisation()))
    service.push("people", catalog.body([_user(person.name)]))
    _add_past(service, keys[0])
    _add_sources(service, keys)
    facts_across.fill(run, service)
    scored.define(
        service,
        scored.leaf(SOURCE, "milliseconds", "lessThan", 1_000),
        scored.leaf(facts_across.SOURCE, "protected", "equal", True),
    )
    _flip(service, keys[:_FLIPPED])
    _ask_for_exemptions(service, [key for key in keys if key.kind == "component"])
    _fill_in_forms(person)
    service.database.settle()


def put(service: Factbook, path: str, document: Any) -> None:
    """PUT a document."""
    service.client.call("PUT", path, msgspec.json.encode(document))


def _organisation() -> list[catalog.Entity]:
    """The teams below a group, and the systems of a domain."""
    given = catalog.organisation()
    for entity in given:
        above = {"parent": DIVISION} if entity["kind"] == "Group" else {"domain": DOMAIN}
        entity["spec"] |= above
    division = catalog.plain("Group", DIVISION, type="division", children=[])
    return [*given, division, catalog.plain("Domain", DOMAIN, owner=DIVISION)]


def _user(name: str) -> catalog.Entity:
    return catalog.plain("User", name, memberOf=[catalog.team(0)])


def _add_past(service: Factbook, key: Key) -> None:
    now = time.time()
    ages = range(_PUSHES, 0, -1)
    items = [
        {
            "entity": _ref(key),
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(now - age * _DAY)),
            "facts": {"milliseconds": 100.0 + age % 7},
        }
        for age in ages
    ]
    _define(service, SOURCE, {"milliseconds": {"type": "float", "unit": "milliseconds"}})
    _push(service, SOURCE, items)


def _add_sources(service: Factbook, keys: list[Key]) -> None:
    chance = random.Random(2)
    schema = {"enabled": {"type": "boolean"}, "open": {"type": "integer"}}
    for number in range(_SOURCES - 2):
        id_ = f"source-{number:03}"
        _define(service, id_, schema)
        known = chance.sample(keys, min(_KNOWN, len(keys)))
        if number < _OF_FIRST:
            known = [keys[0], *(key for key in known if key != keys[0])]
        items = [
            {
                "entity": _ref(key),
                "facts": {"enabled": chance.random() < 0.7, "open": chance.randrange(50)},
            }
            for key in known
        ]
        _push(service, id_, items)


def _flip(service: Factbook, keys: list[Key]) -> None:
    """Push other values of what checks read, so that results change."""
    protected = [{"entity": _ref(key), "facts": {"protected": False}} for key in keys]
    _push(service, facts_across.SOURCE, protected[::2])


def _ask_for_exemptions(service: Factbook, keys: list[Key]) -> None:
    until = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 30 * _DAY))
    for key in keys[:_EXEMPTIONS]:
        asked = {
            "entity": _ref(key),
            "check": scored.check_id(3),
            "reason": "It goes at the end of the month.",
            "until": until,
        }
        service.client.post(f"{_API}/exemptions", msgspec.json.encode(asked))


def _fill_in_forms(person: Person) -> None:
    """Make an importer, whose host does not exist, a connection and a digest."""
    value = "made up"
    url = "https://events.example.com/factbook"
    account = {"account.host": "github.invalid", "account.token": value}
    importer = {"kind": "github", "name": "acme", "every": "6h", "organizations": "acme"}
    connection = {"name": "ci", "base_url": url, "methods": "GET", "at_once": "4"}
    header = {"header-0": "Authorization", "value-0": value}
    digest = {"url": url, "form": "slack", "day": "monday", "hour": "8", "time_zone": "UTC"}
    person.close()  # a server hangs up on who asks nothing for long
    person.send("/importers/new", {**importer, **account})
    person.send("/administration/connections/new", {**connection, **header})
    person.send("/administration/digests", digest)


def _define(service: Factbook, id_: str, schema: dict[str, Any]) -> None:
    document = {
        "id": id_,
        "title": id_.capitalize(),
        "handlerDefinition": {"type": "push", "config": {"id": id_}},
        "schema": schema,
    }
    put(service, f"{_API}/data-sources/{id_}", document)
    service.client.post(f"{_API}/data-sources/{id_}/publish", b"{}")


def _push(service: Factbook, id_: str, items: list[dict[str, Any]]) -> None:
    for start in range(0, len(items), 1_000):
        body = msgspec.json.encode({"items": items[start : start + 1_000]})
        service.client.post(f"{_API}/facts/{id_}", body)


def _ref(key: Key) -> str:
    return f"{key.kind}:default/{key.name}"
