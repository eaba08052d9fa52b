"""axe-core, by which other people's rules of accessibility are checked."""

from functools import cache
from typing import Any

from tests.browser.driving import Window
from tests.contracts.node import MODULES

# What the theme has to do with.
COLOURS = ("color-contrast", "link-in-text-block")

_RUN = """(only) => axe.run(document, {
  resultTypes: ["violations"], ...(only.length && {runOnly: only}),
}).then((found) => found.violations.map(({id, nodes}) => [id, nodes.map((node) =>
  [node.html, ...[...node.any, ...node.all, ...node.none].map(({message}) => message)].join(" | ")
)]))"""


def violations(window: Window, *rules: str) -> list[str]:
    """What is wrong with the page as it is shown now, by these rules, or by all.

    The script comes through the devtools protocol: the page itself would not take it.
    """
    if not window.page.evaluate("typeof axe === 'object'"):
        window.page.evaluate(_script())
    found: list[tuple[str, list[Any]]] = window.page.evaluate(_RUN, rules)
    return [f"{rule}: {place}" for rule, places in found for place in places]


@cache
def _script() -> str:
    text = (MODULES / "axe-core" / "axe.min.js").read_text("utf-8")
    return f"{text}; undefined"
