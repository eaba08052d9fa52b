"""by-query where more meet the condition than are counted for a bounded total."""

from typing import Any

import pytest

from tests.api.querying import page, posted
from tests.catalog.bounds import count_up_to
from tests.service import Service, component, resource

pytestmark = pytest.mark.both_databases

# More than are simply sorted.
BOUND = 2_000
COMPONENTS = BOUND + 50


def _item(number: int) -> dict[str, Any]:
    lifecycle = "experimental" if number < 40 else "production"
    return component(f"n{number // BOUND}-{number}", lifecycle=lifecycle, part="ab"[number % 2])


@pytest.mark.slow
@pytest.mark.spec("catalog.by-query")
async def test_a_bounded_total_is_exact_up_to_the_bound(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_up_to(BOUND, monkeypatch)
    items = [_item(number) for number in range(COMPONENTS)]
    pushed = await service.push("many", *items, resource("n"))
    assert pushed.status_code == 200
    numbers = {
        "kind=component": COMPONENTS,  # known without counting
        "spec.type=service": BOUND + 1,
        "kind=component,spec.type=service": BOUND + 1,
        "spec.lifecycle=production": BOUND + 1,
        "spec.part=a,spec.lifecycle=production": 1_005,
        "kind=resource,spec.type=account": 1,
        "spec.type=none": 0,
    }
    for asked, number in numbers.items():
        found = await page(service, filter=asked, limit=0, totalItems="bounded")
        assert found["totalItems"] == number, asked
    exact = await page(service, filter="spec.type=service", limit=1)
    assert exact["totalItems"] == COMPONENTS
    text: dict[str, Any] = {"fullTextFilter": {"term": "N0"}, "limit": 1}
    assert (await posted(service, **text, totalItems="bounded"))["totalItems"] == BOUND
    text["fullTextFilter"]["term"] = "n"
    bounded = await posted(service, **text, totalItems="bounded")
    assert bounded["totalItems"] == BOUND + 1
    following = await page(service, cursor=bounded["pageInfo"]["nextCursor"], limit=1)
    assert following["totalItems"] == BOUND + 1
    assert (await posted(service, **text))["totalItems"] == COMPONENTS + 1
