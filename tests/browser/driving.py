"""A real Chromium that looks at the pages of a real service, and notes what goes wrong."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    expect,
    sync_playwright,
)

from tests.waiting import LONG

Theme = Literal["light", "dark"]

WIDE: Final = (1440, 900)
NARROW: Final = (390, 844)
# What happens is waited for, not the time: where a page took a quarter of a second to come, the
# next look at what has changed is ten seconds off.
_PATIENCE_MS: Final = LONG * 1_000
expect.set_options(timeout=_PATIENCE_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium as a headless shell, until the end of the block."""
    program = shutil.which("chromium-headless-shell")
    assert program, "chromium-headless-shell is missing: scripts/install-system"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments())
        try:
            yield browser
        finally:
            browser.close()


def arguments() -> list[str]:
    """Chromium's arguments: no GPU, not even an emulated one.

    Its sandbox cannot be made by root, as in a container.
    """
    no_gpu = ["--disable-gpu", "--disable-software-rasterizer"]
    return [*no_gpu, "--no-sandbox"] if os.geteuid() == 0 else no_gpu


class Window:
    """A page, and what went wrong with it: complaints of the console and calls to elsewhere."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        self._origin = origin
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", self._asked)

    def open(self, path: str) -> int:
        """Go to a page; the status that it is answered with."""
        answer = self.page.goto(path)
        assert answer is not None
        return answer.status

    def follow(self, button: Locator) -> None:
        """Press what leads to another page, and be there."""
        with self.page.expect_navigation():
            button.click()

    @property
    def path(self) -> str:
        """The path of the page that is shown."""
        return urlsplit(self.page.url).path

    @property
    def heading(self) -> str:
        """What the page is headed with."""
        return self.page.locator("h1").inner_text()

    def resize(self, size: tuple[int, int]) -> None:
        """Make it this wide and high."""
        self.page.set_viewport_size({"width": size[0], "height": size[1]})

    @property
    def size(self) -> tuple[int, int]:
        """How wide and high it is."""
        found = self.page.viewport_size
        assert found is not None
        return found["width"], found["height"]

    @property
    def scrolls_sideways(self) -> bool:
        """Whether the page is wider than the window."""
        wider: bool = self.page.evaluate(
            "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
        return wider

    def _said(self, message: ConsoleMessage) -> None:
        # That a page is answered with an error is what some tests are about.
        is_of_the_page = message.location["url"] == self.page.url
        if message.type in {"error", "warning"} and not (
            is_of_the_page and message.text.startswith("Failed to load resource")
        ):
            self.complaints.append(f"{message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self._origin}/", "data:")):
            self.complaints.append(f"request: {request.url}")


@contextmanager
def window(
    browser: Browser,
    origin: str,
    *,
    scripts: bool = True,
    size: tuple[int, int] = WIDE,
    theme: Theme = "light",
    signed_in: Mapping[str, Any] | None = None,
) -> Iterator[Window]:
    """A window of a browser with these cookies and no others; closed at the end of the block."""
    context: BrowserContext = browser.new_context(
        base_url=origin,
        java_script_enabled=scripts,
        viewport={"width": size[0], "height": size[1]},
        color_scheme=theme,
        storage_state=signed_in,  # type: ignore[arg-type]  # as storage_state() gives it
        reduced_motion="reduce",
    )
    context.set_default_timeout(_PATIENCE_MS)
    try:
        yield Window(context.new_page(), origin)
    finally:
        context.close()
