"""Every page, as administrators and viewers see it, wide and narrow, light and dark."""

import pytest

from factbook.auth import roles
from factbook.web.routes import PAGES
from tests.browser.addresses import EXAMPLES, NO_PAGES, NOWHERE, OUTSIDE
from tests.browser.axe import COLOURS, violations
from tests.browser.driving import NARROW, WIDE, Theme, Window
from tests.browser.shop import ADMINISTRATOR, VIEWER, Shop, first_link

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

_THEMES: tuple[tuple[Theme, tuple[str, ...]], ...] = (("light", ()), ("dark", COLOURS))


def test_every_page_is_looked_at() -> None:
    shown = {page.path for page in PAGES if page.method == "GET"}
    assert {*EXAMPLES, *OUTSIDE, *NO_PAGES} == shown


@pytest.mark.parametrize("name", [ADMINISTRATOR, VIEWER])
def test_nothing_is_wrong_with_any_page(shop: Shop, name: str) -> None:
    paths = [shop.filled(path) for place in _places(name) for path in EXAMPLES[place]]
    with shop.window(name) as window:
        wrong = [found for path in (*paths, NOWHERE) for found in _wrong(window, path)]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_wrong_with_the_pages_outside(shop: Shop) -> None:
    invitation = first_link(shop.server)
    paths = [path for paths in OUTSIDE.values() for path in paths]
    with shop.window(None) as window:
        wrong = [found for path in (*paths, invitation) for found in _wrong(window, path)]
    assert not wrong, "\n".join(wrong)


def _places(name: str) -> list[str]:
    """The paths of the table at which somebody sees something: of all others one."""
    held = roles.ROLES[roles.ADMINISTRATOR if name == ADMINISTRATOR else roles.VIEWER]
    needs = {page.path: page.needs or () for page in PAGES if page.path in EXAMPLES}
    seen = [path for path, permissions in needs.items() if held.issuperset(permissions)]
    return seen + [path for path in needs if path not in seen][:1]


def _wrong(window: Window, path: str) -> list[str]:
    """Everything that is wrong with a page, each with how the page was looked at."""
    window.resize(WIDE)
    status = window.open(path)
    found = [] if status < 500 else [f"status {status}"]
    found += _looked(window, "wide")
    window.resize(NARROW)
    found += _looked(window, "narrow")
    window.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    found += _looked(window, "narrow and unfolded")
    found += window.complaints
    window.complaints.clear()
    return [f"{path} {one}" for one in found]


def _looked(window: Window, how: str) -> list[str]:
    """What is wrong in light and dark; the theme changes nothing but colours."""
    found = [f"{how}: scrolls sideways"] if window.scrolls_sideways else []
    for theme, rules in _THEMES:
        window.page.emulate_media(color_scheme=theme)
        found += [f"{how}, {theme}: {one}" for one in violations(window, *rules)]
    return found
