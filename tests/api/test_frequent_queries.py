"""by-query where thousands meet the condition: the same answers, found in another way."""

from typing import Any

import pytest

from tests.api.querying import page
from tests.service import PUSH, Service, component, resource

pytestmark = pytest.mark.both_databases

# Each is met by more entities than are simply sorted, and by some that another one leaves out.
NUMBERS = range(1_300)


def _lifecycle(number: int) -> str:
    return ("Production", "production")[number % 2] if number >= 100 else "experimental"


def _item(number: int) -> dict[str, Any]:
    return component(f"n{number:04}", lifecycle=_lifecycle(number), part=str(number % 400))


@pytest.fixture
async def many(service: Service) -> Service:
    assert (await service.push("many", *map(_item, NUMBERS))).status_code == 200
    assert (await service.push("others", resource("other"))).status_code == 200
    return service


async def walked(service: Service, **asked: Any) -> list[str]:
    """The names of every page."""
    found = await page(service, **asked)
    names = [item["metadata"]["name"] for item in found["items"]]
    while cursor := found["pageInfo"].get("nextCursor"):
        found = await page(service, limit=asked["limit"], cursor=cursor)
        names += [item["metadata"]["name"] for item in found["items"]]
    return names


@pytest.mark.slow
@pytest.mark.spec("catalog.by-query")
async def test_pages_of_what_many_meet_hold_each_once_in_the_order(
    many: Service, subtests: pytest.Subtests
) -> None:
    cases: list[str | None] = [None, "metadata.name,desc", "spec.part"]
    for order in cases:
        with subtests.test(order=order):
            asked = {} if order is None else {"orderField": order}
            filters = "kind=component,spec.type=service,spec.lifecycle=production"
            found = await walked(many, filter=filters, limit=500, **asked)
            wanted = [f"n{number:04}" for number in NUMBERS if number >= 100]
            if order == "metadata.name,desc":
                wanted.reverse()
            if order == "spec.part":
                wanted.sort(key=lambda name: (str(int(name[1:]) % 400), name))
            assert found == wanted


@pytest.mark.slow
@pytest.mark.spec("catalog.by-query")
async def test_what_many_meet_is_counted_and_paged_back_to_the_start(many: Service) -> None:
    first = await page(many, filter="spec.lifecycle=PRODUCTION", limit=20)
    assert first["totalItems"] == 1_200
    second = await page(many, limit=20, cursor=first["pageInfo"]["nextCursor"])
    again = await page(many, limit=20, cursor=second["pageInfo"]["prevCursor"])
    assert again["items"] == first["items"]
    behind = await page(many, filter="spec.lifecycle=production", limit=20, offset=20)
    assert behind["items"] == second["items"]


@pytest.mark.slow
@pytest.mark.spec("catalog.by-query")
async def test_a_frequent_value_beside_any_other_condition_is_counted_right(
    many: Service, subtests: pytest.Subtests
) -> None:
    for asked, count in [
        ("spec.type", 1_301),
        ("kind=resource,spec.type=service", 0),
        ("spec.type=service,spec.type=library", 1_300),
        ("spec.type=service,spec.part=7", 4),
        ("spec.type=service,metadata.name=n0007", 1),
        ("spec.type=service,metadata.namespace=away", 0),
        ("spec.type=service,relations.dependson=component:default/none", 0),
    ]:
        with subtests.test(asked=asked, count=count):
            found = await page(many, filter=asked, limit=2)
            assert found["totalItems"] == count
            assert len(found["items"]) == min(count, 2)


@pytest.mark.slow
@pytest.mark.spec("catalog.by-query")
async def test_a_total_of_a_kind_follows_every_change_of_whichever_process(
    many: Service,
) -> None:
    async def totals() -> list[int]:
        asked = ({"filter": f"kind={kind}"} for kind in ("component", "resource"))
        each = [await page(many, limit=0, **one) for one in asked]
        return [found["totalItems"] for found in [*each, await page(many, limit=0)]]

    assert await totals() == [1_300, 1, 1_301]
    alone = await many.http.post(f"{PUSH}/entities", json=component("alone"))
    assert alone.status_code == 200
    assert await totals() == [1_301, 1, 1_302]
    await many.push("others", resource("other"), resource("further"))
    assert await totals() == [1_301, 2, 1_303]
    gone = await many.http.delete(f"{PUSH}/entities/{alone.json()['id']}")
    assert gone.status_code < 300
    assert await totals() == [1_300, 2, 1_302]
