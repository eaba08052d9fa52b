"""The list of the sources that are collected, as a table and as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from factbook.cli.output import age
from factbook.clock import iso_or_none

if TYPE_CHECKING:
    from factbook.operations.collection_commands import SourceStatus

_COLUMNS = (
    "Source",
    "State",
    "Last success",
    "Covered",
    "Failed",
    "Incomplete",
    "Skipped",
    "Calls",
    "Limit left",
    "Took",
    "Next run",
    "Problem",
)


class SourceTable(NamedTuple):
    """Heads of columns, and a row for each source."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def of(found: Sequence["SourceStatus"]) -> SourceTable:
    """Columns and rows; those who own sources are a column where there are any."""
    rows: list[Sequence[object]] = list(map(_row, found))
    if not any(each.source.owner for each in found):
        return SourceTable(_COLUMNS, rows)
    (first, *more), owners = _COLUMNS, [each.source.owner for each in found]
    owned = [(id_, owner, *rest) for (id_, *rest), owner in zip(rows, owners, strict=True)]
    return SourceTable((first, "Owner", *more), owned)


def as_json(status: "SourceStatus") -> dict[str, Any]:
    """The state of a source."""
    from factbook.facts import health

    source, known, next_run, at = status
    shown = {"id": source.id, "title": source.title, "cadence": source.cadence}
    if source.owner is not None:
        shown["owner"] = source.owner
    if known is None:
        return shown | {"health": {"state": "new", "nextRun": iso_or_none(next_run)}}
    return shown | {"health": health.render(source, known, at)}


def _row(status: "SourceStatus") -> tuple[object, ...]:
    from factbook.facts import health

    known, next_run = status.health, age(status.next_run, status.at)
    if known is None:
        return (status.source.id, "new", *[None] * 8, next_run, None)
    last, state = known.last, health.condition(status.source, known, status.at).state
    figures: tuple[object, ...] = (None,) * 7
    if last is not None:
        took = f"{(last.duration or 0) / 1000:.1f} s"
        counts = (last.covered, last.failed, last.incomplete, last.skipped)
        figures = (*counts, last.calls, last.rate_limit_left, took)
    shown: str = state
    if known.running is not None:
        wait = known.running.wait(status.at)
        shown = f"{state}, {wait or 'running'}"
        if wait:  # the limit is what it waits for
            figures = (*figures[:-2], known.running.rate_limit_left, figures[-1])
    succeeded, problem = age(known.succeeded_at, status.at), last and last.error
    return (status.source.id, shown, succeeded, *figures, next_run, problem)
