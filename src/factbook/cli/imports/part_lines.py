"""A part of an import as printed: its name, and as JSON."""

from typing import TYPE_CHECKING, Any, Final

from factbook.cli.output import age
from factbook.clock import iso_or_none

if TYPE_CHECKING:
    from factbook.importers.part_store import ImportPartRecord

PART_COLUMNS: Final = ("Part", "State", "Read", "Last complete", "Entities", "Problems", "Held")


def part_json(record: "ImportPartRecord") -> dict[str, Any]:
    """The part with its problems and what it holds."""
    return {
        "part": part_name(record),
        "state": record.state,
        "readAt": iso_or_none(record.read_at),
        "completeAt": iso_or_none(record.complete_at),
        "entities": record.items,
        "problemCount": record.problem_count,
        "problems": [problem._asdict() for problem in record.problems],
        "held": list(record.held),
        "reason": record.reason or None,
    }


def part_row(record: "ImportPartRecord") -> tuple[object, ...]:
    """The row of a part, by PART_COLUMNS."""
    times = age(record.read_at), age(record.complete_at)
    counts = record.items, record.problem_count, len(record.held)
    return (part_name(record), record.state, *times, *counts)


def part_name(record: "ImportPartRecord") -> str:
    """The name by which commands take it, e.g. github/acme.repositories."""
    return f"{record.importer}/{record.part}"
