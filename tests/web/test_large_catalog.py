"""The catalog's page where more entities match than are counted unasked."""

import re
from urllib.parse import urlencode

import pytest

from tests.catalog.bounds import count_up_to
from tests.service import Service, component, resource
from tests.web.visiting import signed_in, words

# More than are simply sorted.
BOUND = 2_000
LAST = BOUND + 1
# Filters that more entities meet.
_FREQUENT: tuple[dict[str, str], ...] = (
    {"q": "pay"},
    {"lifecycle": "production"},
    {"lifecycle": "production", "kind": "component"},
    {"type": "service", "lifecycle": "production"},
    {"owner": "team-a"},
    {"owner": "team-a", "kind": "component"},
    {"owner": "team-a", "lifecycle": "production"},
)


@pytest.mark.slow
async def test_above_a_bound_matches_are_counted_on_demand(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_up_to(BOUND, monkeypatch)
    visitor = await signed_in(service)
    items = [component(f"pay-{number // BOUND}-{number}") for number in range(LAST)]
    pushed = await service.push("all", *items, resource("pay-table"), resource("other"))
    assert pushed.status_code == 200
    everything = await visitor.text("/catalog")
    assert "2,003 entities" in words(everything)
    of_kind = await visitor.text("/catalog", kind="component")
    assert "2,001 entities found" in words(of_kind)
    assert "All 2,003 Component 2,001 Resource 2" in words(of_kind)
    page = await visitor.text("/catalog", q="pay")
    assert "More than 2,000 entities found · Count exactly" in words(page)
    assert "40 entities of more than 2,000" in words(page)
    assert "All Component Resource" in words(page)
    few = await visitor.text("/catalog", q="pay", kind="resource")
    assert "1 entity found" in words(few)
    many = await visitor.text("/catalog", q="pay", kind="component")
    assert "More than 2,000 entities found" in words(many)
    at_bound = await visitor.text("/catalog", q="pay-0-", order="updated")
    assert "2,000 entities found" in words(at_bound)
    assert "All 2,000 Component 2,000" in words(at_bound)
    link = re.search(r'href="([^"]+)">Count exactly', page)
    assert link is not None
    counted = await visitor.text(link[1].replace("&amp;", "&"))
    assert "2,002 entities found" in words(counted)
    assert "All 2,002 Component 2,001 Resource 1" in words(counted)
    assert "40 entities of 2,002" in words(counted)
    for asked in _FREQUENT:
        for order in ("name", "kind", "updated"):
            pages = [
                await visitor.text(
                    f"/catalog?{urlencode(asked | {'order': order, 'count': count})}"
                )
                for count in ("", "exact")
            ]
            one, other = (re.findall(r'<th scope="row">.*?</th>', page, re.S) for page in pages)
            assert one == other
            assert len(one) == 40
            assert "More than 2,000 entities found" in words(pages[0])
            assert "entities found" in words(pages[1])


async def test_an_unknown_way_of_counting_is_refused(service: Service) -> None:
    visitor = await signed_in(service)
    page = await visitor.text("/catalog?count=roughly", 400)
    assert "This did not work" in page
