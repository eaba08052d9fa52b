"""The values of the chart, as its schema describes them."""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from tests.deploy.test_deploy import DEPLOY

CHART = DEPLOY / "chart" / "factbook"
Values = dict[str, Any]


def schema() -> Values:
    """The schema of the values."""
    found: Values = json.loads((CHART / "values.schema.json").read_text())
    return found


def defaults() -> Values:
    """The values that nobody chose."""
    found: Values = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


def leaves(part: Values | None = None, path: str = "") -> Iterator[tuple[str, Values]]:
    """Each value that can be set, by its dotted path, with its part of the schema."""
    for name, below in (part or schema())["properties"].items():
        if "properties" in below:
            yield from leaves(below, f"{path}{name}.")
        else:
            yield f"{path}{name}", below


def default(path: str) -> Any:
    """The default of a value, by its dotted path."""
    found: Any = defaults()
    for name in path.split("."):
        found = found[name]
    return found


def merged(values: Values, other: Values) -> Values:
    """Values with others in their place, as Helm merges them."""
    both = {
        name: merged(values[name], other[name])
        for name in values.keys() & other.keys()
        if isinstance(values[name], dict) and isinstance(other[name], dict)
    }
    return {**values, **other, **both}


def at(path: str, value: Any) -> Values:
    """One value at its dotted path."""
    for name in reversed(path.split(".")):
        value = {name: value}
    found: Values = value
    return found
