"""What a first visit costs: everything that comes over the wire, nothing of it from a cache."""

import pytest

from bench.catalog import entities
from tests.browser.shop import Shop

pytestmark = pytest.mark.system

MOST_BYTES = 100_000
PAGES = (
    "/",
    "/catalog",
    "/catalog/component/default/checkout",
    "/catalog/component/default/checkout/facts/coverage/lines",
    "/sets/many",
    "/sets/many/revisions/1",
    "/data-sources",
    "/data-sources/builds",
    "/data-sources/builds/edit",
    "/connect",
    "/connect/tools/get-entity-facts",
    "/administration/account",
    "/administration/account/api-access",
    "/administration/people",
    "/administration/audit",
)


@pytest.fixture(scope="module")
def full(shop: Shop) -> Shop:
    """With enough entities to fill every list."""
    shop.push("many", list(entities(500)))
    return shop


@pytest.mark.parametrize("path", PAGES)
def test_a_first_visit_takes_less_than_a_hundred_kilobytes(full: Shop, path: str) -> None:
    with full.window() as window:
        devtools = window.page.context.new_cdp_session(window.page)
        sizes: list[float] = []
        devtools.on(
            "Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"])
        )
        devtools.send("Network.enable")
        assert window.open(path) == 200
        window.page.wait_for_load_state("networkidle")
    # The page, its sheet, its script and its picture.
    assert len(sizes) >= 4
    assert sum(sizes) < MOST_BYTES
