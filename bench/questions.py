"""What is asked of a catalog to see how the cost of an answer grows with it.

A question is a list of calls of which the load draws at random, so that most entities are asked
for once in a while, wherever they are stored.
"""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from bench import catalog, datasets
from bench.catalog import Key
from bench.load import Call
from bench.run import by_name
from bench.service import CATALOG, TOOLS, Factbook, tool_call

_DRAWN = 5_000  # entities that are asked for
_REFS = 50
_TEXT = "fullTextFilterFields=metadata.name"
_OWN = "entity-metadata"
_PUSHED = datasets.source(3)
_FACTS = "get-entity-facts"
_SEARCH = "/catalog?q=u000-billing"


class Sample(NamedTuple):
    """Entities of a catalog: all of a kind's names can be made up again, the uids are read."""

    keys: Sequence[Key]
    uids: Sequence[str]
    units: int


class Question(NamedTuple):
    """What is asked; `bounded`: its cost must not grow with the catalog."""

    key: str
    text: str
    calls: Callable[[Sample], list[Call]]
    bounded: bool = True


def sample(service: Factbook, entities: int, seed: int = 1) -> Sample:
    """Random entities of all units."""
    chance = random.Random(seed)
    units = datasets.units(entities)
    each = max(1, _DRAWN // len(units))
    keys: list[Key] = []
    for unit in units:
        made = datasets.keys_of(unit, entities)
        keys += chance.sample(made, min(each, len(made)))
    chance.shuffle(keys)
    return Sample(keys, _uids(service, keys[:1_000]), len(units))


def _uids(service: Factbook, keys: Sequence[Key]) -> list[str]:
    body = {"entityRefs": [_ref(key) for key in keys], "fields": ["metadata.uid"]}
    found = service.client.call("POST", f"{CATALOG}/by-refs", msgspec.json.encode(body))
    return [one["metadata"]["uid"] for one in msgspec.json.decode(found)["items"]]


def _ref(key: Key) -> str:
    return f"{key.kind}:default/{key.name}"


def _get(path: str) -> Callable[[Sample], list[Call]]:
    return lambda sample: [Call("GET", path)]


def _by_name(sample: Sample) -> list[Call]:
    return [Call("GET", by_name(key)) for key in sample.keys]


def _by_uid(sample: Sample) -> list[Call]:
    return [Call("GET", f"{CATALOG}/by-uid/{uid}") for uid in sample.uids]


def _by_refs(sample: Sample) -> list[Call]:
    chance = random.Random(2)
    bodies = [
        msgspec.json.encode({"entityRefs": [_ref(key) for key in keys]}).decode()
        for keys in (chance.choices(sample.keys, k=_REFS) for _ in range(200))
    ]
    return [Call("POST", f"{CATALOG}/by-refs", body) for body in bodies]


def _query(**words: str | list[str]) -> str:
    return f"{CATALOG}/by-query?{urlencode({'limit': '20', **words}, doseq=True)}"


def _of_owner(sample: Sample, **words: str) -> list[Call]:
    return [
        Call("GET", _query(filter=f"kind=component,spec.owner=u{unit:03}-team-{team:02}", **words))
        for unit in range(sample.units)
        for team in range(catalog.TEAMS)
    ]


def _text(term: Callable[[Key], str], **words: str) -> Callable[[Sample], list[Call]]:
    return lambda sample: [
        Call("GET", f"{_query(**words)}&{_TEXT}&fullTextFilterTerm={quote(term(key))}")
        for key in sample.keys[:200]
    ]


def _tool(name: str, **more: object) -> Callable[[Sample], list[Call]]:
    return lambda sample: [
        Call("POST", TOOLS, tool_call(name, {"name": key.name, "kind": key.kind} | more))
        for key in sample.keys
    ]


def _components(name: str, **more: object) -> Callable[[Sample], list[Call]]:
    return lambda sample: [
        Call("POST", TOOLS, tool_call(name, {"name": key.name} | more))
        for key in sample.keys
        if key.kind == "component"
    ]


def _plain_tool(name: str, **arguments: object) -> Callable[[Sample], list[Call]]:
    return lambda sample: [Call("POST", TOOLS, tool_call(name, arguments))]


def _of_all(source: str) -> Callable[[Sample], list[Call]]:
    return lambda sample: [
        Call(
            "POST",
            TOOLS,
            tool_call(
                "get-all-entities-facts",
                {"dataSourceId": source, "limit": 100, "cursor": _ref(key)},
            ),
        )
        for key in sample.keys[:1_000]
        if key.kind == "component"
    ]


def _entity_pages(sample: Sample) -> list[Call]:
    return [Call("GET", f"/catalog/{key.kind}/default/{key.name}") for key in sample.keys[:1_000]]


READS = (
    Question("name", "entity by name", _by_name),
    Question("uid", "entity by uid", _by_uid),
    Question("refs", "50 entities by reference", _by_refs),
    Question(
        "page",
        "20 components of a type, without their total",
        _get(_query(filter="kind=component,spec.type=service", totalItems="exclude")),
    ),
    Question("owned", "20 components of one team and their total", _of_owner),
    Question(
        "page-total",
        "20 components and their total",
        _get(_query(filter="kind=component")),
    ),
    Question(
        "text",
        "20 entities with a frequent text in the name",
        _text(lambda key: key.name.partition("-")[2].partition("-")[0], totalItems="exclude"),
    ),
    Question(
        "text-one",
        "the one entity with a text in the name",
        _text(lambda key: key.name[1:], totalItems="exclude"),
    ),
    Question(
        "text-total",
        "20 entities with a frequent text, and their total",
        _text(lambda key: key.name.partition("-")[2].partition("-")[0]),
        bounded=False,
    ),
    Question(
        "filter-total",
        "20 components of a type and their total",
        _get(_query(filter="kind=component,spec.type=service")),
        bounded=False,
    ),
    Question(
        "facets",
        "facets of kind and spec.type",
        _get("/api/catalog/entity-facets?facet=kind&facet=spec.type"),
        bounded=False,
    ),
)

TOOL_CALLS = (
    Question("discovery", "get-data-source-discovery", _plain_tool("get-data-source-discovery")),
    Question("facts", "get-entity-facts", _tool(_FACTS, dataSourceId=_PUSHED)),
    Question("own-facts", "the same of the catalog itself", _tool(_FACTS, dataSourceId=_OWN)),
    Question("all-facts", "get-all-entities-facts, 100 of them", _of_all(_PUSHED)),
    Question("all-own-facts", "the same of the catalog itself", _of_all(_OWN)),
    Question("codehost", "get-codehost-metrics", _tool("get-codehost-metrics")),
    Question("security", "get-security-metrics", _tool("get-security-metrics")),
    Question("incident", "get-incident-metrics", _tool("get-incident-metrics")),
    Question("observability", "get-observability-metrics", _tool("get-observability-metrics")),
    Question("compliance", "get-entity-compliance", _tool("get-entity-compliance")),
    Question("repository", "get-repository-info", _components("get-repository-info")),
    Question("past", "get-fact-history", _tool("get-fact-history")),
    Question("changed", "get-changed-facts", _plain_tool("get-changed-facts", since="2026-01-01")),
)

PAGES = (
    Question("entity-page", "page of an entity", _entity_pages),
    Question("catalog-page", "page of the catalog", _get("/catalog")),
    Question("overview-page", "overview", _get("/"), bounded=False),
    Question("search-page", "page of the catalog, a text", _get(_SEARCH), bounded=False),
    Question("metrics", "scrape of /metrics", _get("/metrics")),
)
