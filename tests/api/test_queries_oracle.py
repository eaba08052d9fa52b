"""Queries and facets against the same rules in plain Python, on made-up entities and questions."""

import random
from typing import Any

import httpx2
import pytest

from tests.api import oracle, query_oracle
from tests.service import Service
from tests.soak import seeds

pytestmark = pytest.mark.both_databases

QUERY = "/api/catalog/entities/by-query"
FACETS = "/api/catalog/entity-facets"
FACET_KEYS = (
    "kind",
    "metadata.namespace",
    "metadata.labels.env",
    "metadata.annotations.example.com/Slug",
    "metadata.tags",
    "metadata.Note",
    "spec.tier",
    "relations.ownedBy",
    "relations.dependencyOf",
    "spec.absent",
)


@pytest.fixture
async def catalog(service: Service) -> list[oracle.Entity]:
    chance = random.Random(11)
    pushed = [oracle.entity(chance, number) for number in range(60)]
    assert (await service.push("all", *pushed)).status_code == 200
    found: list[oracle.Entity] = (await service.http.get("/api/catalog/entities")).json()
    return found


async def pages(http: httpx2.AsyncClient, limit: int, body: dict[str, Any]) -> list[list[str]]:
    """The references page by page, by cursors forward and then back, which have to agree."""
    forward: list[list[str]] = []
    backward: list[list[str]] = []
    asked = {**body, "limit": limit}
    while True:
        answer = await http.post(QUERY, json=asked)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        forward.append(query_oracle.refs(page["items"]))
        if "nextCursor" not in page["pageInfo"]:
            break
        asked = {"cursor": page["pageInfo"]["nextCursor"], "limit": limit}
    while "prevCursor" in page["pageInfo"]:
        page = (
            await http.post(QUERY, json={"cursor": page["pageInfo"]["prevCursor"], "limit": limit})
        ).json()
        backward.insert(0, query_oracle.refs(page["items"]))
        assert "nextCursor" in page["pageInfo"]
    assert backward == forward[:-1]
    return forward


@pytest.mark.slow
@pytest.mark.spec("catalog.by-query-post")
@pytest.mark.parametrize("seed", seeds(1, soak=2))
async def test_predicates_and_orders_give_what_the_rules_say(
    service: Service, catalog: list[oracle.Entity], seed: int
) -> None:
    chance = random.Random(seed)
    found = 0
    for _ in range(60):
        query = query_oracle.predicate(chance, catalog)
        orders = oracle.orders(chance)
        fitting = [one for one in catalog if query_oracle.fits(oracle.index(one), query)]
        wanted = oracle.expected(fitting, [], orders)
        by = [{"field": text.split(":", 1)[1], "order": text.split(":", 1)[0]} for text in orders]
        answer = await service.http.post(QUERY, json={"query": query, "orderBy": by})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert query_oracle.refs(page["items"]) == wanted, (query, orders)
        assert page["totalItems"] == len(wanted)
        limit = chance.choice([1, 4, 30]) if len(wanted) < 12 else 13
        paged = await pages(service.http, limit, {"query": query, "orderBy": by})
        assert [ref for one in paged for ref in one] == wanted, (query, orders)
        assert all(len(one) == limit for one in paged[:-1])
        found += len(wanted)
    assert found > 300  # the questions were worth asking


@pytest.mark.slow
@pytest.mark.spec("catalog.by-query")
async def test_filters_orders_and_text_give_what_the_rules_say(
    service: Service, catalog: list[oracle.Entity]
) -> None:
    chance = random.Random(5)
    found = 0
    for _ in range(80):
        filters, orders = oracle.filters(chance, catalog), oracle.orders(chance)
        fields = chance.sample(["metadata.name", "metadata.Note", "spec.tier", "kind"], 2)
        term = chance.choice(["a", "RE", "lue", " 1", "%", "_", "\\", "", "ä", "none"])
        fitting = [
            one
            for one in catalog
            if not term.strip() or query_oracle.contains(oracle.index(one), term, fields)
        ]
        wanted = oracle.expected(fitting, filters, orders)
        answer = await service.http.get(
            QUERY,
            params={
                "filter": filters,
                "orderField": [",".join(reversed(text.split(":", 1))) for text in orders],
                "fullTextFilterTerm": term,
                "fullTextFilterFields": ",".join(fields),
            },
        )
        assert answer.status_code == 200, answer.text
        asked = (filters, orders, term, fields)
        assert query_oracle.refs(answer.json()["items"]) == wanted, asked
        assert answer.json()["totalItems"] == len(wanted), asked
        found += len(wanted)
    assert found > 150


@pytest.mark.slow
@pytest.mark.spec("catalog.facets")
async def test_facets_give_what_the_rules_say(
    service: Service, catalog: list[oracle.Entity]
) -> None:
    chance = random.Random(3)
    counted = 0
    for number in range(40):
        filters = oracle.filters(chance, catalog) if number else []
        fitting = set(oracle.expected(catalog, filters, []))
        entities = [one for one in catalog if oracle.ref(one) in fitting]
        answer = await service.http.get(FACETS, params={"facet": FACET_KEYS, "filter": filters})
        assert answer.status_code == 200, answer.text
        facets = answer.json()["facets"]
        assert list(facets) == list(FACET_KEYS)
        for key in FACET_KEYS:
            assert facets[key] == query_oracle.facet(entities, key), (key, filters)
            counted += len(facets[key])
        query = query_oracle.predicate(chance, catalog)
        among = [one for one in catalog if query_oracle.fits(oracle.index(one), query)]
        posted = await service.http.post(FACETS, json={"facets": ["kind"], "query": query})
        assert posted.json() == {"facets": {"kind": query_oracle.facet(among, "kind")}}
    assert counted > 300
