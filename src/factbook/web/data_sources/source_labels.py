"""Description of a data source in words."""

import re
from collections.abc import Mapping
from typing import Any, Final

from factbook.catalog.filters import EntityFilter
from factbook.facts import schema
from factbook.facts.datasource import DataSource, Duration, Lifecycle
from factbook.web.site.formats import counted

# Which tool a fact with a name of its shape fills.
TOOLS: Final[Mapping[str, str]] = {
    "codehost": "get-codehost-metrics",
    "security": "get-security-metrics",
    "incident": "get-incident-metrics",
    "observability": "get-observability-metrics",
    "repository": "get-repository-info",
}
COMPLIANCE_TOOL: Final = "get-entity-compliance"
TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "entity": (
        "The entity itself",
        "Facts are taken from what the catalog says of the entity. It asks no other system.",
    ),
    "http": (
        "An address over HTTP",
        "A connection is asked for each entity, and facts are taken from what it answers.",
    ),
    "repository-file": (
        "A file of the repository",
        "Facts are taken from one file of the repository behind the entity, such as package.json.",
    ),
    "repository-directory": (
        "The files of a repository",
        "Facts are taken from the list of files below a directory of the entity's repository.",
    ),
    "push": (
        "Pushed facts",
        "Nothing is collected: a script or a pipeline sends the facts.",
    ),
}
_SHAPED: Final = {
    f"{shape.name}.{fact.name}": TOOLS[shape.name]
    for shape in schema.SHAPES
    if shape.name in TOOLS
    for fact in schema.shape_facts(shape)
}
_CATALOG: Final = frozenset({"entity-metadata", "entity-ownership", "techdocs"})
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NUMBER: Final = re.compile(r"\d{1,2}")
_STEP: Final = re.compile(r"\*/(\d{1,2})")


def tool(source: DataSource, fact: str) -> str | None:
    """Metric tool that returns a fact of the source."""
    if source.id in _CATALOG:
        return COMPLIANCE_TOOL
    return _SHAPED.get(fact)


def cadence(line: str) -> str:
    """Describe a cron line, `every 6 hours`; a complex one stays as it is."""
    minute, hour, day, month, weekday = line.split()
    if (day, month) != ("*", "*"):
        return f"cron {line}"
    if step := _STEP.fullmatch(minute):
        return _every(int(step[1]), "minute") if (hour, weekday) == ("*", "*") else f"cron {line}"
    if minute == "*":
        return "every minute" if (hour, weekday) == ("*", "*") else f"cron {line}"
    if not _NUMBER.fullmatch(minute):
        return f"cron {line}"
    return _by_hour(int(minute), hour, weekday) or f"cron {line}"


def _by_hour(minute: int, hour: str, weekday: str) -> str | None:
    if weekday == "*" and hour == "*":
        return "every hour"
    if weekday == "*" and (step := _STEP.fullmatch(hour)):
        return _every(int(step[1]), "hour")
    if not _NUMBER.fullmatch(hour):
        return None
    time = f"at {int(hour):02d}:{minute:02d} UTC"
    if weekday == "*":
        return f"every day {time}"
    if weekday.lower() in {"1-5", "mon-fri"}:
        return f"on weekdays {time}"
    return f"every {_DAYS[int(weekday) % 7]} {time}" if weekday in set("01234567") else None


def _every(count: int, unit: str) -> str:
    return f"every {unit}" if count == 1 else f"every {count} {unit}s"


def duration(given: Duration) -> str:
    """Format a duration: `1 hour, 30 minutes`."""
    return ", ".join(counted(count, unit.removesuffix("s")) for unit, count in given.items())


def lifecycle(given: Lifecycle | None) -> str:
    """Describe the amount of history that is kept."""
    if given is None:
        return "all of it"
    if given.max_items is not None:
        return f"the last {given.max_items:,} of each entity"
    return duration(given.time_to_live or {})


def conditions(entity_filter: EntityFilter | None) -> list[list[tuple[str, str]]]:
    """A filter as a list of alternatives, each a list of a path and its condition."""
    return [
        [(path, _condition(wanted)) for path, wanted in one.items()] for one in entity_filter or ()
    ]


def _condition(wanted: Any) -> str:
    if isinstance(wanted, dict):
        return "is there" if wanted.get("exists") else "is not there"
    values = wanted if isinstance(wanted, list) else [wanted]
    return f"is {' or '.join(map(_plain, values))}"


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
