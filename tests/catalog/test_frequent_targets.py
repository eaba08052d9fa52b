"""Pages of entities with a relation to frequent targets."""

import pytest
from msgspec.structs import replace

from factbook.catalog.store import entity_query
from factbook.catalog.store.conditions import AllOf, Condition, Related
from factbook.catalog.store.entity_query import Query, SortField
from tests.service import Service, component

ORDERS = {
    "name": Query(order=[SortField("metadata.name")], limit=20),
    "reference": Query(limit=20),
    "time": Query(order=[SortField("", True, "e.updated_at")], ref_descending=True, limit=20),
}
OWNERS = ("group:default/a", "group:default/b")


@pytest.mark.slow
@pytest.mark.parametrize("share", [2, 3, 5, 20])
async def test_pages_are_the_same_however_many_entities_have_the_targets(
    subtests: pytest.Subtests, service: Service, share: int
) -> None:
    """They are listed, or probed one by one, depending on their number."""
    items = [component(f"c{n:03}", owner="ab"[n % 2] if n % share == 0 else "c") for n in range(90)]
    await service.push("all", *items[:40])
    service.time.advance(1_000)
    await service.push("more", *items[40:])
    database = service.state.database
    found = await entity_query.build_related_condition(database, "ownedBy", OWNERS)
    for order in ORDERS:
        with subtests.test(order=order):
            near, listed = [
                await _refs(service, condition, order)
                for condition in (found, Related(["ownedby"], OWNERS))
            ]
            assert near == listed
            assert len(near) == min(20, -(-90 // share))


async def _refs(service: Service, condition: Condition, order: str) -> list[str]:
    query = replace(ORDERS[order], condition=AllOf([condition]))
    return (await entity_query.query_page_of(service.state.database, query, "e.ref", str)).items
