"""What the tests of a browser ask for: the browser, and a service to look at."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser import shop as shops
from tests.browser.driving import chromium
from tests.browser.shop import Shop


# Of a module, not of the session: its event loop would be in the way of other tests.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def shop(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A service with something on every page; tests leave it as it is."""
    with shops.opened(browser, tmp_path_factory.mktemp("shop")) as found:
        yield found
