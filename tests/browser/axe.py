"""axe-core, by which other people's rules of accessibility are checked."""

from functools import cache
from typing import Any

from tests.browser.driving import Window
from tests.contracts.node import MODULES

_RUN = """() => axe.run(document, {resultTypes: ["violations"]}).then((found) =>
  found.violations.map(({id, nodes}) => [id, nodes.map(({html, any, all, none}) =>
    [html, ...[...any, ...all, ...none].map(({message}) => message)].join(" | "))]))"""


def violations(window: Window) -> list[str]:
    """What axe-core finds wrong with the page as it is shown now.

    The script comes through the devtools protocol: the page itself would not take it.
    """
    if not window.page.evaluate("typeof axe === 'object'"):
        window.page.evaluate(_script())
    found: list[tuple[str, list[Any]]] = window.page.evaluate(_RUN)
    return [f"{rule}: {place}" for rule, places in found for place in places]


@cache
def _script() -> str:
    text = (MODULES / "axe-core" / "axe.min.js").read_text("utf-8")
    return f"{text}; undefined"
