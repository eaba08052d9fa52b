"""`python -m tests.browser.recording`: the month of facts that `make demo` starts with.

The integrations ask the fakes of the made-up shop's vendors on each day of its month. What they
bring is kept in `examples/shop/facts.json`, under the data sources of `examples/shop/sources`. A
fact is kept for the days on which it was another than the day before.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from factbook.clock import DAY
from tests.browser import showcase
from tests.browser.vendors import Vendors
from tests.integrations.asking import Asking
from tests.service import NOON

FILE: Final = Path(__file__).parents[2] / "examples" / "shop" / "facts.json"
# The data source of the demo that has what an integration brings.
SOURCES: Final = {
    "github": "code-host",
    "snyk": "scanner",
    "pagerduty": "on-call",
    "datadog": "monitors",
}
COVERAGE: Final = "coverage"

Facts = dict[str, Any]
Day = dict[str, dict[str, Facts]]


async def on_day(vendors: Vendors, day: int) -> Day:
    """The facts of a day, by data source and entity."""
    vendors.live_until(day, NOON - (showcase.DAYS - day) * DAY)
    found = {
        SOURCES[asking.integration.source.id]: await _collected(asking)
        for asking in vendors.askings
    }
    coverage = {_ref(name): {"lines": showcase.coverage(name, day)} for name in showcase.NAMES}
    return found | {COVERAGE: coverage}


async def _collected(asking: Asking) -> dict[str, Facts]:
    targets = {
        _ref(entity["metadata"]["name"]): target
        for entity in showcase.components()
        if isinstance(target := asking.integration.target(entity), str)
    }
    brought = await asking.collect(*targets.values())
    return {ref: dict(brought[target].values) for ref, target in targets.items()}


def changes(days: list[Day]) -> Iterator[tuple[str, str, int, Facts]]:
    """Data source, entity, day and the facts that are other ones than on the day before."""
    for source in days[0]:
        for ref in days[0][source]:
            before: Facts = {}
            for day, found in enumerate(days):
                now = found[source][ref]
                changed = {name: now[name] for name in sorted(now) if now[name] != before.get(name)}
                if changed:
                    yield source, ref, day, changed
                before |= changed


def written(days: list[Day]) -> str:
    """The text of the file: a line for each entity and day."""
    lines = [json.dumps(change, separators=(",", ":")) for change in changes(days)]
    return "[\n" + ",\n".join(lines) + "\n]\n"


async def month() -> list[Day]:
    """Every day of the month, from the first to today."""
    vendors = Vendors()
    return [await on_day(vendors, day) for day in range(showcase.DAYS + 1)]


def _ref(name: str) -> str:
    return f"component:default/{name}"


if __name__ == "__main__":
    FILE.write_text(written(asyncio.run(month())))
