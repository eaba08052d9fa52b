"""A made-up shop for the demo: its catalog, its data sources, and a month of facts about it.

`facts.json` has what integrations brought that asked stand-ins of vendors, once a day; the demo
pushes it as a script would. `python -m tests.browser.recording` writes it.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import yaml

from factbook.client import Client

FOLDER: Final = Path(__file__).parent
# The sets that are changed once more after their first push, so that they have two revisions.
CHANGED: Final = ("payments", "discovery")
_MOST_ITEMS: Final = 1_000

Item = dict[str, Any]


class Refused(Exception):
    """The service did not take what was pushed; the text says why."""


def push_catalog(client: Client) -> int:
    """Push a set for each team; how many entities there are."""
    sets = {file.stem: _documents(file) for file in sorted((FOLDER / "entities").glob("*.yaml"))}
    for name in CHANGED:
        if name in sets:
            client.push(name, _before(sets[name]))
    for name, entities in sets.items():
        client.push(name, entities)
    return sum(map(len, sets.values()))


def push_facts(client: Client, now: datetime) -> int:
    """Publish the data sources and push the month that ends now; how many items were pushed."""
    changes = json.loads((FOLDER / "facts.json").read_text("utf-8"))
    last = max(day for _, _, day, _ in changes)
    pushed = 0
    for source, of_source in groupby(changes, key=itemgetter(0)):
        [definition] = _documents(FOLDER / "sources" / f"{source}.yaml")
        client.put_data_source(definition)
        client.publish_data_source(source)
        items = list(_items(list(of_source), last, now))
        for start in range(0, len(items), _MOST_ITEMS):
            _push(client, source, items[start : start + _MOST_ITEMS])
        pushed += len(items)
    return pushed


def _push(client: Client, source: str, items: list[Item]) -> None:
    answer = client.push_facts(source, items)
    for item in answer.items:
        for problem in item.problems:
            raise Refused(f"{source}, {item.entity}: {problem.path}: {problem.message}")


def _items(changes: list[list[Any]], last: int, now: datetime) -> Iterator[Item]:
    """The facts of each entity on each day, from those that changed."""
    for entity, of_entity in groupby(changes, key=itemgetter(1)):
        changed = {day: facts for _, _, day, facts in of_entity}
        known: dict[str, Any] = {}
        for day in range(last + 1):
            known |= changed.get(day, {})
            if known:
                at = (now - timedelta(days=last - day)).astimezone(UTC)
                yield {"entity": entity, "facts": dict(known), "timestamp": at.isoformat()}


def _before(entities: list[Any]) -> list[Any]:
    """The entities of a team as they were before its latest change."""
    *others, newest = entities
    return [*others, newest | {"metadata": newest["metadata"] | {"tags": ["new"]}}][1:]


def _documents(file: Path) -> list[Any]:
    return [each for each in yaml.safe_load_all(file.read_text("utf-8")) if each]
