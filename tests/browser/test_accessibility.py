"""Every page, as administrators and viewers see it, wide and narrow, light and dark."""

import pytest

from factbook.auth import permissions
from factbook.web.routes import PAGES
from tests.browser.addresses import EXAMPLES, NO_PAGES, NOWHERE, OUTSIDE
from tests.browser.axe import ALL, BUT_COLORS, COLORS, Rules, violations
from tests.browser.driving import NARROW, WIDE, Theme, Window
from tests.browser.shop import ADMINISTRATOR, VIEWER, Shop

pytestmark = pytest.mark.system

_THEMES: tuple[tuple[Theme, Rules], ...] = (("light", ALL), ("dark", COLORS))
# No test takes so long that it is cut off.
_SLICES = 4
_UNFOLD = "for (const one of document.querySelectorAll('details')) one.open = true"

_SPOIL = """() => {
  const names = ["input", "pre", "script"];
  const [unlabelled, wide, script] = names.map((name) => document.createElement(name));
  wide.textContent = "wide".repeat(100);
  script.textContent = "document.title = 'inline'";
  const state = document.createElement("div");
  state.style.cssText = "width: 1.5em; overflow-wrap: anywhere";
  state.innerHTML = "<span>unknown</span><nav class=tabs>tabs</nav>";
  state.lastChild.style.overflowX = "scroll";
  document.querySelector("main").append(unlabelled, wide, script, state);
}"""

# Words of states that are broken, and bars of tabs that scroll.
_CRAMPED = """() => {
  const found = [...document.querySelectorAll(".tabs")]
    .filter((bar) => ["auto", "scroll"].includes(getComputedStyle(bar).overflowX))
    .map((bar) => `scrolls: ${bar.innerText}`);
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode, at = node.data.search(/\\bunknown\\b/i);
    if (at < 0) continue;
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + "unknown".length);
    const lines = new Set([...range.getClientRects()].map((one) => Math.round(one.top)));
    if (lines.size > 1) found.push(`broken: ${node.data.trim().slice(0, 80)}`);
  }
  return found;
}"""

_UNHINTED = """() => [...document.querySelectorAll("table")]
  .filter((table) => table.scrollWidth > table.parentElement.clientWidth)
  .map((table) => table.parentElement)
  .filter((place) => place.tabIndex < 0 ||
    !(place.ariaLabel || document.getElementById(place.getAttribute("aria-labelledby"))) ||
    !(place.previousElementSibling?.matches(".scroll-hint") &&
      place.previousElementSibling.checkVisibility()) &&
    !getComputedStyle(place).backgroundImage.includes("gradient"))
  .map((place) => place.outerHTML.slice(0, 200))"""


def test_every_page_is_looked_at() -> None:
    shown = {page.path for page in PAGES if page.method == "GET"}
    assert {*EXAMPLES, *OUTSIDE, *NO_PAGES} == shown


def test_what_is_wrong_would_be_noticed(shop: Shop) -> None:
    with shop.window(size=NARROW) as window:
        window.open("/sets")
        assert _looked(window, "narrow") == []
        window.page.evaluate(_SPOIL)
        found = "\n".join(_looked(window, "narrow"))
    assert "scrolls sideways" in found
    assert "broken: unknown" in found
    assert "scrolls: tabs" in found
    assert "light: label: <input" in found
    [complaint] = window.complaints
    assert "Content Security Policy" in complaint


@pytest.mark.parametrize("first", range(_SLICES))
@pytest.mark.parametrize("name", [ADMINISTRATOR, VIEWER])
def test_nothing_is_wrong_with_any_page(shop: Shop, name: str, first: int) -> None:
    places = _places(name)[first::_SLICES]
    paths = {path: place for place in places for path in EXAMPLES[place]}
    if first == 0:
        paths[NOWHERE] = NOWHERE
    # Viewers look at narrow pages as they come; administrators unfold what they see more of.
    looks = _wrong_unfolded if name == ADMINISTRATOR else _wrong_folded
    elsewhere = _seen(VIEWER)
    with shop.window(name) as window:
        wrong = [
            found
            for path, place in paths.items()
            for found in looks(window, shop.filled(path), alone=place not in elsewhere)
        ]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_wrong_with_the_pages_outside(shop: Shop) -> None:
    paths = [path for paths in OUTSIDE.values() for path in paths]
    with shop.window(None) as window:
        wrong = [
            found
            for path in (*paths, shop.invite("guest"))
            for found in _wrong_folded(window, path)
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("path", "fields", "button", "heading"),
    [
        (
            "/administration/account/api-access",
            {"Name": "a look"},
            "Generate token",
            "Token “a look”",
        ),
        (
            "/administration/account/api-access",
            {"Name": "no \N{ZERO WIDTH SPACE} name"},
            "Generate token",
            "API access",
        ),
        ("/administration/people", {"Name": "newcomer"}, "Create link", "Invitation"),
        (
            "/administration/account",
            {"Current password": "wrong", "New password": "short", "Confirm new password": "x"},
            "Change password",
            "Account",
        ),
        (
            "/administration/connections/new",
            {"Name": "No name", "Address": "http://elsewhere.example"},
            "Create connection",
            "New connection",
        ),
        (
            "/administration/webhooks",
            {"Address": "ftp://elsewhere.example"},
            "Create webhook",
            "Webhooks",
        ),
        (
            "/administration/digests",
            {"Address": "ftp://elsewhere.example"},
            "Create digest",
            "Digests",
        ),
        (
            "/data-sources/builds/edit",
            {"Definition, in YAML or JSON": "id: [builds"},
            "Save the draft",
            "Edit builds",
        ),
        (
            "/data-sources/builds/edit",
            {"Entity": "checkout"},
            "Try this text",
            "Edit builds",
        ),
        ("/data-sources/builds", {"Entity": "resource:orders-db"}, "Run for it", "Builds"),
        ("/connect", {}, "Check the endpoint", "Connect an agent"),
        ("/connect/tools/get-entity-facts", {}, "Call the tool", "Facts about one entity"),
    ],
)
def test_nothing_is_wrong_with_what_a_form_is_answered(
    shop: Shop, path: str, fields: dict[str, str], button: str, heading: str
) -> None:
    with shop.window() as window:
        window.open(path)
        main = window.page.get_by_role("main")
        for name, value in fields.items():
            main.get_by_label(name, exact=True).first.fill(value)
        window.follow(main.get_by_role("button", name=button, exact=True))
        assert window.heading == heading
        wrong = _looked(window, "wide")
        window.resize(NARROW)
        wrong += _looked(window, "narrow") + window.complaints
    assert not wrong, "\n".join(wrong)


def _places(name: str) -> list[str]:
    """The paths of the table at which somebody sees something: of all others one."""
    seen = _seen(name)
    return seen + [page.path for page in PAGES if page.path in {*EXAMPLES}.difference(seen)][:1]


def _seen(name: str) -> list[str]:
    """The paths of the table at which somebody sees something."""
    held = permissions.ROLES[
        permissions.ADMINISTRATOR if name == ADMINISTRATOR else permissions.VIEWER
    ]
    needs = {page.path: page.needs or () for page in PAGES if page.path in EXAMPLES}
    return [path for path, permissions in needs.items() if held.issuperset(permissions)]


def _wrong_folded(window: Window, path: str, *, alone: bool = True) -> list[str]:
    """Everything that is wrong with a page as it comes, each with how it was looked at.

    Wide, it is looked at by all rules only where administrators do not see more of it.
    """
    found = _opened(window, path)
    found += (_looked if alone else _laid_out)(window, "wide")
    window.resize(NARROW)
    found += _looked(window, "narrow")
    return _told(window, path, found)


def _wrong_unfolded(window: Window, path: str, *, alone: bool) -> list[str]:
    """Everything that is wrong with a page when it is unfolded, each with how it was looked at.

    Narrow, its colors are looked at only where nobody else looks.
    """
    found = _opened(window, path)
    found += _laid_out(window, "wide")
    window.resize(NARROW)
    found += _laid_out(window, "narrow")
    window.page.evaluate(_UNFOLD)
    found += _looked(window, "narrow and unfolded", colors=alone)
    window.resize(WIDE)
    found += _looked(window, "wide and unfolded")
    return _told(window, path, found)


def _opened(window: Window, path: str) -> list[str]:
    """What is wrong with how a page is answered, which is shown wide."""
    window.resize(WIDE)
    status = window.open(path)
    return [] if status < 500 else [f"status {status}"]


def _told(window: Window, path: str, found: list[str]) -> list[str]:
    """What was found, and what the browser complains of, each with the path."""
    found = [f"{path} {one}" for one in (*found, *window.complaints)]
    window.complaints.clear()
    return found


def _unhinted(window: Window) -> list[str]:
    """Tables wider than their place without a shadow or words, a name, or a way by keyboard."""
    found: list[str] = window.page.evaluate(_UNHINTED)
    return found


def _laid_out(window: Window, how: str) -> list[str]:
    """What is wrong with where things are, which no theme changes."""
    found = [f"{how}: scrolls sideways"] if window.scrolls_sideways else []
    if window.size[0] == NARROW[0]:
        found += [f"{how}: nothing says that it scrolls: {one}" for one in _unhinted(window)]
    cramped: list[str] = window.page.evaluate(_CRAMPED)
    return found + [f"{how}: {one}" for one in cramped]


def _looked(window: Window, how: str, *, colors: bool = True) -> list[str]:
    """What is wrong in light and dark; the theme changes nothing but colors."""
    found = _laid_out(window, how)
    if not colors:
        return found + [f"{how}: {one}" for one in violations(window, BUT_COLORS)]
    for theme, rules in _THEMES:
        window.page.emulate_media(color_scheme=theme)
        found += [f"{how}, {theme}: {one}" for one in violations(window, rules)]
    return found
