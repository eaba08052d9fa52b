"""by-query where more meet the condition than are counted for a bounded total."""

from typing import Any

import pytest

from tests.api.querying import page, posted
from tests.service import Service, component, resource

pytestmark = pytest.mark.both_databases

COMPONENTS = 10_050


def _item(number: int) -> dict[str, Any]:
    lifecycle = "experimental" if number < 40 else "production"
    return component(f"n{number:05}", lifecycle=lifecycle, part="ab"[number % 2])


@pytest.mark.spec("catalog.by-query")
async def test_a_bounded_total_is_exact_up_to_the_bound(service: Service) -> None:
    items = [_item(number) for number in range(COMPONENTS)]
    pushed = await service.push("many", *items, resource("n"))
    assert pushed.status_code == 200
    numbers = {
        "kind=component": COMPONENTS,  # known without counting
        "spec.type=service": 10_001,
        "kind=component,spec.type=service": 10_001,
        "spec.lifecycle=production": 10_001,
        "spec.part=a,spec.lifecycle=production": 5_005,
        "kind=resource,spec.type=account": 1,
        "spec.type=none": 0,
    }
    for asked, number in numbers.items():
        found = await page(service, filter=asked, limit=0, totalItems="bounded")
        assert found["totalItems"] == number, asked
    exact = await page(service, filter="spec.type=service", limit=1)
    assert exact["totalItems"] == COMPONENTS
    text: dict[str, Any] = {"fullTextFilter": {"term": "N0"}, "limit": 1}
    assert (await posted(service, **text, totalItems="bounded"))["totalItems"] == 10_000
    text["fullTextFilter"]["term"] = "n"
    bounded = await posted(service, **text, totalItems="bounded")
    assert bounded["totalItems"] == 10_001
    following = await page(service, cursor=bounded["pageInfo"]["nextCursor"], limit=1)
    assert following["totalItems"] == 10_001
    assert (await posted(service, **text))["totalItems"] == COMPONENTS + 1
