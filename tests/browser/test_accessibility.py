"""The pages that everybody sees, as administrators see them: wide and narrow, light and dark."""

import pytest

from factbook.web.routes import PAGES
from tests.browser.addresses import EXAMPLES, NO_PAGES, OUTSIDE
from tests.browser.driving import NARROW
from tests.browser.looking import find_faults_shown, find_faults_unfolded, list_seen
from tests.browser.shop import ADMINISTRATOR, VIEWER, Shop

pytestmark = pytest.mark.system

# No test takes so long that it is cut off.
_SLICES = 4
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


def test_every_page_isfind_faults_shown_at() -> None:
    shown = {page.path for page in PAGES if page.method == "GET"}
    assert {*EXAMPLES, *OUTSIDE, *NO_PAGES} == shown


def test_what_is_wrong_would_be_noticed(shop: Shop) -> None:
    with shop.window(size=NARROW) as window:
        window.open("/sets")
        assert find_faults_shown(window, "narrow") == []
        window.page.evaluate(_SPOIL)
        found = "\n".join(find_faults_shown(window, "narrow"))
    assert "scrolls sideways" in found
    assert "broken: unknown" in found
    assert "scrolls: tabs" in found
    assert "light: label: <input" in found
    [complaint] = window.complaints
    assert "Content Security Policy" in complaint


@pytest.mark.parametrize("first", range(_SLICES))
def test_nothing_is_wrong_with_pages_that_everybody_sees(shop: Shop, first: int) -> None:
    shared = [place for place in list_seen(ADMINISTRATOR) if place in list_seen(VIEWER)]
    with shop.window(ADMINISTRATOR) as window:
        wrong = [
            fault
            for place in shared[first::_SLICES]
            for path in EXAMPLES[place]
            for fault in find_faults_unfolded(window, shop.filled(path), alone=False)
        ]
    assert not wrong, "\n".join(wrong)
