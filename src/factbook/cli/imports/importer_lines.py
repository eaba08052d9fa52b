"""An importer as printed: its state, its runs and its parts, and as JSON."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from factbook.cli.imports.part_lines import PART_COLUMNS, part_json, part_row
from factbook.cli.output import age, print_table, say
from factbook.clock import SECOND, iso_or_none, now

if TYPE_CHECKING:
    from factbook.importers.run_store import ImportRun
    from factbook.importers.status import ImporterDetail, ImporterStatus


def importer_json(found: "ImporterDetail") -> dict[str, Any]:
    """The importer with its runs, and its parts with their problems."""
    status, stored = found.status, found.stored
    every = status.importer.every if status else None
    return {
        "importer": found.id,
        "state": _state(found),
        "problem": found.problem or None,
        "completeAt": iso_or_none(status.complete_at) if status else None,
        "nextRunAt": iso_or_none(status.next_at) if status else None,
        "intervalSeconds": None if every is None else every // SECOND,
        "createdBy": stored.created_by if stored else None,
        "updatedBy": stored.updated_by if stored else None,
        "runs": [_run_json(run) for run in found.runs],
        "parts": list(map(part_json, found.current)),
    }


def print_importer(found: "ImporterDetail") -> None:
    """Print the importer, its last runs, its parts and their problems."""
    say(f"{found.id}: {', '.join(_about(found))}")
    if found.problem:
        say(found.problem)
    print_table(["Run", "State", "Why", "Calls", "Left", "Error"], map(_run_row, found.runs[:10]))
    print_table(PART_COLUMNS, map(part_row, found.current))
    for part in found.current:
        for problem in part.problems:
            say(str(problem))


def _about(found: "ImporterDetail") -> Iterator[str]:
    yield _state(found)
    if found.status is not None:
        yield f"last complete run {age(found.status.complete_at) or 'never'}"
        yield f"next run {_next(found.status)}"
    if found.stored is not None:
        yield f"last changed by {found.stored.updated_by}"


def _state(found: "ImporterDetail") -> str:
    if found.status is not None:
        return found.status.state
    return "unusable" if found.problem else "not run by the service"


def _next(status: "ImporterStatus") -> str | None:
    if status.under_way is None and status.next_at is None:
        return "when asked"
    return age(status.next_at) if (status.next_at or 0) > now() else "now"


def _run_json(run: "ImportRun") -> dict[str, Any]:
    return {
        "id": run.id,
        "reason": run.reason,
        "state": run.state,
        "startedAt": iso_or_none(run.started_at),
        "endedAt": iso_or_none(run.ended_at),
        "calls": run.calls,
        "callsLeft": run.calls_left,
        "error": run.error or None,
    }


def _run_row(run: "ImportRun") -> tuple[object, ...]:
    return (age(run.started_at), run.state, run.reason, run.calls, run.calls_left, run.error)
