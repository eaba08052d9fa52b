"""The entity list against the same rules in plain Python, on made-up entities and questions."""

import random
from typing import Any

import httpx2
import pytest

from tests.api import oracle
from tests.service import Service
from tests.soak import seeds

pytestmark = pytest.mark.both_databases

ENTITIES = "/api/catalog/entities"


async def refs_of_pages(http: httpx2.AsyncClient, url: str | None, **query: Any) -> list[str]:
    """The references on every page, from the first to the last that a Link leads to."""
    found: list[str] = []
    while url is not None:
        answer = await http.get(url, params=query or None)
        assert answer.status_code == 200, answer.text
        found += [oracle.ref(entity) for entity in answer.json()]
        url, query = answer.links.get("next", {}).get("url"), {}
    return found


@pytest.mark.slow
@pytest.mark.spec("catalog.list-filter", "catalog.list-order", "catalog.list-paging")
@pytest.mark.parametrize("seed", seeds(1, soak=2))
async def test_filter_order_and_paging_give_what_the_rules_say(service: Service, seed: int) -> None:
    chance = random.Random(seed)
    pushed = [oracle.entity(chance, number) for number in range(60)]
    assert (await service.push("all", *pushed)).status_code == 200
    entities = (await service.http.get(ENTITIES)).json()
    assert len(entities) == 60
    found = 0
    for _ in range(60):
        filters, orders = oracle.filters(chance, entities), oracle.orders(chance)
        wanted = oracle.expected(entities, filters, orders)
        asked = {"filter": filters, "order": orders}
        whole = await refs_of_pages(service.http, ENTITIES, **asked)
        assert whole == wanted, asked
        limit = chance.choice([1, 7, 30, 100]) if len(wanted) < 20 else 13
        paged = await refs_of_pages(service.http, ENTITIES, limit=limit, **asked)
        assert paged == wanted, asked
        found += len(wanted)
    assert found > 300  # the questions were worth asking
