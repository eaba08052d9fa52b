"""What a first visit costs: what comes over the wire, nothing of it from a cache, and from whom."""

from typing import NamedTuple

import pytest

from bench.catalog import entities
from tests.browser.addresses import EXAMPLES
from tests.browser.driving import Window
from tests.browser.shop import Shop

pytestmark = pytest.mark.system

MOST_BYTES = 100_000
# Lists that are full.
_FURTHER = ("/sets/many", "/sets/many/revisions/1")


class Visit(NamedTuple):
    """What a visit to a page brought, in bytes, and the addresses that it asked for."""

    weight: float
    asked: tuple[str, ...]


class Scale:
    """Weighs what a window loads, and notes what it asks for."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._sizes: list[float] = []
        self._asked: list[str] = []
        window.page.on("request", lambda request: self._asked.append(request.url))
        devtools = window.page.context.new_cdp_session(window.page)
        devtools.on("Network.loadingFinished", self._loaded)
        devtools.send("Network.enable")
        devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})

    def visit(self, path: str) -> Visit:
        """Visit a page: what comes is the page, its sheet, its script and its picture."""
        self._sizes.clear()
        self._asked.clear()
        self._window.open(path)
        assert len(self._sizes) >= 4, path
        return Visit(sum(self._sizes), tuple(self._asked))

    def _loaded(self, event: dict[str, float]) -> None:
        self._sizes.append(event["encodedDataLength"])


@pytest.fixture(scope="module")
def visits(shop: Shop) -> dict[str, Visit]:
    """A first visit to each page."""
    shop.push("many", list(entities(500)))
    paths = [shop.filled(path) for paths in EXAMPLES.values() for path in paths]
    with shop.window() as window:
        scale = Scale(window)
        return {path: scale.visit(path) for path in (*paths, *_FURTHER)}


def test_a_first_visit_takes_less_than_a_hundred_kilobytes(visits: dict[str, Visit]) -> None:
    weights = {path: visit.weight for path, visit in visits.items()}
    assert max(weights.values()) < MOST_BYTES, weights


def test_a_first_visit_asks_nobody_else(shop: Shop, visits: dict[str, Visit]) -> None:
    for path, visit in visits.items():
        assert visit.asked, path
        elsewhere = [url for url in visit.asked if not url.startswith(f"{shop.url}/")]
        assert (path, elsewhere) == (path, [])
