"""axe-core, by which other people's rules of accessibility are checked."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from tests.browser.driving import Window
from tests.contracts.node import MODULES

Rules = Mapping[str, Any]

# What the theme has to do with.
_COLORS = ("color-contrast", "link-in-text-block")
ALL: Final[Rules] = {}
COLORS: Final[Rules] = {"runOnly": _COLORS}
BUT_COLORS: Final[Rules] = {"rules": {rule: {"enabled": False} for rule in _COLORS}}

# Preloading would fetch the style sheets again on each run, for a rule that is off.
_RUN = """(rules) => axe.run(document, {
  resultTypes: ["violations"], preload: false, ...rules,
}).then((found) => found.violations.map(({id, nodes}) => [id, nodes.map((node) =>
  [node.html, ...[...node.any, ...node.all, ...node.none].map(({message}) => message)].join(" | ")
)]))"""


def violations(window: Window, rules: Rules) -> list[str]:
    """What is wrong with the page as it is shown now, by these rules.

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
