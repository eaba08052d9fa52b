"""What a first visit costs: what comes over the wire, nothing of it from a cache, and from whom."""

import pytest

from bench.catalog import entities
from tests.browser.addresses import EXAMPLES
from tests.browser.driving import Window
from tests.browser.shop import Shop

pytestmark = pytest.mark.system

MOST_BYTES = 100_000
# Lists that are full.
_FURTHER = ("/sets/many", "/sets/many/revisions/1")


class Scale:
    """Weighs what a window loads."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._sizes: list[float] = []
        devtools = window.page.context.new_cdp_session(window.page)
        devtools.on("Network.loadingFinished", self._loaded)
        devtools.send("Network.enable")
        devtools.send("Network.setCacheDisabled", {"cacheDisabled": True})

    def bytes_of(self, path: str) -> float:
        """What a visit to a page brings: the page, its sheet, its script and its picture."""
        self._sizes.clear()
        self._window.open(path)
        assert len(self._sizes) >= 4, path
        return sum(self._sizes)

    def _loaded(self, event: dict[str, float]) -> None:
        self._sizes.append(event["encodedDataLength"])


def test_a_first_visit_takes_less_than_a_hundred_kilobytes(shop: Shop) -> None:
    shop.push("many", list(entities(500)))
    paths = [shop.filled(path) for paths in EXAMPLES.values() for path in paths]
    with shop.window() as window:
        scale = Scale(window)
        weights = {path: scale.bytes_of(path) for path in (*paths, *_FURTHER)}
    assert max(weights.values()) < MOST_BYTES, weights


def test_a_first_visit_asks_nobody_else(shop: Shop) -> None:
    asked: list[str] = []
    with shop.window() as window:
        window.page.on("request", lambda request: asked.append(request.url))
        for path in [shop.filled(path) for paths in EXAMPLES.values() for path in paths]:
            asked.clear()
            window.open(path)
            elsewhere = [url for url in asked if not url.startswith(f"{shop.url}/")]
            assert (path, elsewhere) == (path, [])
