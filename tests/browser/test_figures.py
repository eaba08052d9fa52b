"""Percentages and bars: each leads to what it counts."""

from typing import Final

import pytest

from tests.browser.addresses import EXAMPLES
from tests.browser.driving import Window
from tests.browser.shop import Shop

pytestmark = pytest.mark.system

# Where a percentage is no count of the catalog, and why, by a selector of CSS.
EXCEPTIONS: Final = {
    "code, pre, textarea, option, .hint": "text of somebody, or an example of it",
    ".chart, svg": "a scale; what the chart is about stands in its head",
    ".fact-figures": "values of one fact, in its unit",
    ".help": "the documentation",
}
# Of a row that is about one thing, the link stands beside the bar.
_LOOK = """(exceptions) => {
  const main = document.querySelector("main");
  const leads = (element) => element.closest("a[href]") ||
    element.closest("li, tr, dd")?.querySelector("a[href]");
  const found = [];
  const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const at = texts.currentNode.parentElement;
    if (!/\\d\\s?%/.test(texts.currentNode.data) || at.closest(exceptions)) continue;
    if (!leads(at)) found.push(texts.currentNode.data.trim().slice(0, 80));
  }
  for (const bar of main.querySelectorAll("meter, progress, .run-bar"))
    if (!leads(bar)) found.push(bar.outerHTML.slice(0, 120));
  return found;
}"""


def dead_ends(window: Window) -> list[str]:
    """Percentages and bars of the page without a link."""
    found: list[str] = window.page.evaluate(_LOOK, ", ".join(EXCEPTIONS))
    return found


def test_every_percentage_and_bar_leads_to_what_it_counts(shop: Shop) -> None:
    paths = [shop.filled(path) for paths in EXAMPLES.values() for path in paths]
    with shop.window() as window:
        wrong = []
        for path in paths:
            window.open(path)
            wrong += [f"{path}: {one}" for one in dead_ends(window)]
    assert not wrong, "\n".join(wrong)


def test_one_that_leads_nowhere_would_be_noticed(shop: Shop) -> None:
    with shop.window() as window:
        window.open("/sets")
        assert dead_ends(window) == []
        window.page.evaluate(
            "document.querySelector('main').insertAdjacentHTML('beforeend', "
            "'<p>42 %</p><p><meter value=1></meter></p>')"
        )
        assert len(dead_ends(window)) == 2
