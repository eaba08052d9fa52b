"""What is wrong with how a page is shown, wide and narrow, light and dark."""

from factbook.auth import permissions
from factbook.web.routes import PAGES
from tests.browser.addresses import EXAMPLES
from tests.browser.axe import ALL, BUT_COLORS, COLORS, Rules, violations
from tests.browser.driving import NARROW, WIDE, Theme, Window
from tests.browser.shop import ADMINISTRATOR

_Looks = tuple[tuple[Theme, Rules], ...]
_BOTH_THEMES: _Looks = (("light", ALL), ("dark", COLORS))
_DARK: _Looks = (("dark", ALL),)
_WITHOUT_COLORS: _Looks = (("light", BUT_COLORS),)
_UNFOLD = "for (const one of document.querySelectorAll('details')) one.open = true"

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


def list_seen(name: str) -> list[str]:
    """The paths of the table at which somebody sees something."""
    held = permissions.ROLES[
        permissions.ADMINISTRATOR if name == ADMINISTRATOR else permissions.VIEWER
    ]
    needs = {page.path: page.needs or () for page in PAGES if page.path in EXAMPLES}
    return [path for path, permissions in needs.items() if held.issuperset(permissions)]


def find_faults(window: Window, path: str, *, alone: bool = True) -> list[str]:
    """Everything that is wrong with a page as it comes, each with how it was looked at.

    If administrators see it too (not `alone`), it is looked at by all rules only narrow and dark.
    Its other colors are checked in their wide window.
    """
    found = _open(window, path)
    found += (find_faults_shown if alone else find_layout_faults)(window, "wide")
    window.resize(NARROW)
    found += find_faults_shown(window, "narrow", _BOTH_THEMES if alone else _DARK)
    return _collect(window, path, found)


def find_faults_unfolded(window: Window, path: str, *, alone: bool) -> list[str]:
    """Everything that is wrong with a page when it is unfolded, each with how it was looked at.

    Narrow, its colors are looked at only where nobody else looks.
    """
    found = _open(window, path)
    found += find_layout_faults(window, "wide")
    window.resize(NARROW)
    found += find_layout_faults(window, "narrow")
    window.page.evaluate(_UNFOLD)
    looks = _BOTH_THEMES if alone else _WITHOUT_COLORS
    found += find_faults_shown(window, "narrow and unfolded", looks)
    window.resize(WIDE)
    found += find_faults_shown(window, "wide and unfolded")
    return _collect(window, path, found)


def _open(window: Window, path: str) -> list[str]:
    """What is wrong with how a page is answered, which is shown wide."""
    window.resize(WIDE)
    status = window.open(path)
    return [] if status < 500 else [f"status {status}"]


def _collect(window: Window, path: str, found: list[str]) -> list[str]:
    """What was found, and what the browser complains of, each with the path."""
    found = [f"{path} {one}" for one in (*found, *window.complaints)]
    window.complaints.clear()
    return found


def _find_unhinted(window: Window) -> list[str]:
    """Tables wider than their place without a shadow or words, a name, or a way by keyboard."""
    found: list[str] = window.page.evaluate(_UNHINTED)
    return found


def find_layout_faults(window: Window, how: str) -> list[str]:
    """What is wrong with where things are, which no theme changes."""
    found = [f"{how}: scrolls sideways"] if window.scrolls_sideways else []
    if window.size[0] == NARROW[0]:
        found += [f"{how}: nothing says that it scrolls: {one}" for one in _find_unhinted(window)]
    cramped: list[str] = window.page.evaluate(_CRAMPED)
    return found + [f"{how}: {one}" for one in cramped]


def find_faults_shown(window: Window, how: str, looks: _Looks = _BOTH_THEMES) -> list[str]:
    """What is wrong in light and dark; the theme changes nothing but colors."""
    found = find_layout_faults(window, how)
    for theme, rules in looks:
        window.page.emulate_media(color_scheme=theme)
        found += [f"{how}, {theme}: {one}" for one in violations(window, rules)]
    return found
