"""Every page, as administrators and viewers see it, wide and narrow, light and dark."""

import pytest

from factbook.auth import permissions
from factbook.web.routes import PAGES
from tests.browser.addresses import EXAMPLES, NO_PAGES, NOWHERE, OUTSIDE
from tests.browser.axe import COLOURS, violations
from tests.browser.driving import NARROW, WIDE, Theme, Window
from tests.browser.shop import ADMINISTRATOR, VIEWER, Shop

pytestmark = pytest.mark.system

_THEMES: tuple[tuple[Theme, tuple[str, ...]], ...] = (("light", ()), ("dark", COLOURS))
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
    # What is folded up is the same for both, so that each looks at it in one way.
    unfolded = name == ADMINISTRATOR
    elsewhere = _seen(VIEWER) if unfolded else []
    with shop.window(name) as window:
        wrong = [
            found
            for path, place in paths.items()
            for found in _wrong(
                window,
                shop.filled(path),
                unfolded=unfolded,
                folded=place not in elsewhere,
            )
        ]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_wrong_with_the_pages_outside(shop: Shop) -> None:
    paths = [path for paths in OUTSIDE.values() for path in paths]
    with shop.window(None) as window:
        wrong = [found for path in (*paths, shop.invite("guest")) for found in _wrong(window, path)]
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


def _wrong(window: Window, path: str, *, unfolded: bool = False, folded: bool = True) -> list[str]:
    """Everything that is wrong with a page, each with how the page was looked at.

    What is narrow is looked at by all rules as it comes, `unfolded`, or both.
    """
    window.resize(WIDE)
    status = window.open(path)
    found = [] if status < 500 else [f"status {status}"]
    found += _looked(window, "wide")
    window.resize(NARROW)
    found += (_looked if folded else _laid_out)(window, "narrow")
    if unfolded:
        window.page.evaluate(_UNFOLD)
        found += _looked(window, "narrow and unfolded")
    found += window.complaints
    window.complaints.clear()
    return [f"{path} {one}" for one in found]


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


def _looked(window: Window, how: str) -> list[str]:
    """What is wrong in light and dark; the theme changes nothing but colours."""
    found = _laid_out(window, how)
    for theme, rules in _THEMES:
        window.page.emulate_media(color_scheme=theme)
        found += [f"{how}, {theme}: {one}" for one in violations(window, *rules)]
    return found
