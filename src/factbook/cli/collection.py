"""`factbook worker`, `collect` and `sources`: collection on the database itself."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
import typer

from factbook import clock as clocks
from factbook.cli.connection import DatabaseUrl, run_on_database, service_settings, settings_from
from factbook.cli.output import (
    CommandError,
    Json,
    format_age,
    print_answer,
    print_json,
    print_note,
    print_table,
    say,
)
from factbook.clock import Clock, iso_or_none

if TYPE_CHECKING:
    from factbook.collection.lanes import LaneCollector
    from factbook.operations.collection_commands import SourceDetail, SourceStatus
    from factbook.scheduling.runs import CountedGap, RunRecord


_SOURCE_COLUMNS = (
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

Show = Callable[["RunRecord"], None]

# Between two lines, when something has come and when nothing has.
_EVERY_SECONDS: Final = 10.0
_WAITING_SECONDS: Final = 60.0


class SourceTable(NamedTuple):
    """Heads of columns, and a row for each source."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def tabulate_sources(found: Sequence["SourceStatus"]) -> SourceTable:
    """Columns and rows; those who own sources are a column where there are any."""
    rows: list[Sequence[object]] = list(map(_source_row, found))
    if not any(each.source.owner for each in found):
        return SourceTable(_SOURCE_COLUMNS, rows)
    (first, *more), owners = _SOURCE_COLUMNS, [each.source.owner for each in found]
    owned = [(id_, owner, *rest) for (id_, *rest), owner in zip(rows, owners, strict=True)]
    return SourceTable((first, "Owner", *more), owned)


def source_json(status: "SourceStatus") -> dict[str, Any]:
    """The state of a source."""
    from factbook.facts import freshness

    source, known, next_run, at = status
    shown = {"id": source.id, "title": source.title, "cadence": source.cadence}
    if source.owner is not None:
        shown["owner"] = source.owner
    if known is None:
        return shown | {"health": {"state": "new", "nextRun": iso_or_none(next_run)}}
    return shown | {"health": freshness.render_health(source, known, at)}


def _source_row(status: "SourceStatus") -> tuple[object, ...]:
    from factbook.facts import freshness

    known, next_run = status.health, format_age(status.next_run, status.at)
    if known is None:
        return (status.source.id, "new", *[None] * 8, next_run, None)
    last, state = known.last, freshness.source_condition(status.source, known, status.at).state
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
    succeeded, problem = format_age(known.succeeded_at, status.at), last and last.error
    return (status.source.id, shown, succeeded, *figures, next_run, problem)


def worker(database_url: DatabaseUrl = None) -> None:
    """Collect facts from the configured sources until stopped.

    `serve` does so by itself, in one of its processes, unless there is a worker. On PostgreSQL any
    number of workers, on any number of machines, share the work if factbook[workers] is installed;
    otherwise one of them collects, and the others wait to take over.

    \b
    Examples:
      factbook worker
      factbook worker --database-url postgresql://factbook@db/factbook
    """
    import uvloop

    from factbook.backend import Backend
    from factbook.operations import collection_commands

    settings = service_settings(database_url)
    uvloop.run(
        collection_commands.run_collector(Backend.traced(settings), _sharing(settings.database_url))
    )


def _sharing(database_url: str) -> "type[LaneCollector] | None":
    """The collector of workers that share the work, where that is possible and installed."""
    if database_url.startswith("sqlite") or find_spec("dbos") is None:
        return None
    from factbook import process

    # Among what DBOS imports, croniter asks the program `file` about the interpreter.
    with process.without_variables():
        from factbook.collection.lanes import LaneCollector

    return LaneCollector


def collect(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Id of the source.")],
    *,
    entity: Annotated[
        str | None,
        typer.Option(metavar="REF", help="Only this entity: name or kind:namespace/name."),
    ] = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Collect the facts of one source now, showing progress on stderr.

    \b
    Examples:
      factbook collect github
      factbook collect github --entity payments
    """
    import asyncio

    from factbook.backend import Backend
    from factbook.operations import collection_commands

    # How the run ends is what the command itself says.
    settings = msgspec.structs.replace(settings_from(database_url), log_level="error")
    with Backend.traced_meanwhile(settings) as service, run_progress(source) as show:
        run = asyncio.run(collection_commands.collect_now(service, source, entity, show))
    if as_json:
        print_json(_run_json(run))
    else:
        say(f"{source}: {_run_figures(run)}")
    if run.state == "failed":
        raise CommandError(f"{source} brought nothing: {run.error}")


def list_sources(database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List the sources that are collected, with their health; `factbook sources` does the same.

    Where a group owns any of them, a column has the owners.

    \b
    Examples:
      factbook sources
      factbook sources list --json
    """
    from factbook.operations import collection_commands

    found = run_on_database(database_url, collection_commands.list_statuses)
    columns, rows = tabulate_sources(found)
    print_answer(list(map(source_json, found)), columns, rows, as_json=as_json)


def show_source(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Id of the source.")],
    *,
    failed: Annotated[
        bool, typer.Option("--failed", help="List the entities that the last run failed for.")
    ] = False,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Show the state of a source, its last run, and the facts that are missing, by reason.

    \b
    passing  could not be asked for: the last values are kept for three cadences
    final    the vendor has none, or does not show it
    skipped  the entity does not say where to ask

    \b
    Examples:
      factbook sources show github
      factbook sources show github --failed
      factbook sources show github --json
    """
    from factbook.operations import collection_commands

    detail = run_on_database(database_url, collection_commands.find_detail, source, failed=failed)
    if as_json:
        print_json(_detail_json(detail))
        return
    state, reason = detail.condition
    say(f"{source}: {state}{f'. {reason}' if reason else ''}")
    if detail.run is not None:
        say(f"Last run: {_run_figures(detail.run)}")
    if detail.gaps:
        print_table(("Kind", "Reason", "Place", "Entities"), map(_gap_row, detail.gaps))
    if detail.failed:
        print_table(("Entity", "Reason"), ((ref, reason) for ref, reason in detail.failed))


def _gap_row(gap: "CountedGap") -> tuple[object, ...]:
    return gap.kind, gap.reason, gap.place or "everything", gap.entities


def _detail_json(detail: "SourceDetail") -> dict[str, Any]:
    return {
        "id": detail.source.id,
        "state": detail.condition.state,
        "reason": detail.condition.reason or None,
        "lastRun": detail.run and _run_json(detail.run),
        "gaps": [gap._asdict() for gap in detail.gaps],
        "failed": [{"entityRef": ref, "reason": reason} for ref, reason in detail.failed],
    }


def _run_figures(run: "RunRecord") -> str:
    return (
        f"{run.covered} covered, {run.failed} failed, {run.incomplete} incomplete, "
        f"{run.skipped} skipped; {run.calls} calls in {(run.duration or 0) / 1000:.1f} s"
    )


def _run_json(run: "RunRecord") -> dict[str, Any]:
    return {
        "source": run.source_id,
        "state": run.state,
        "startedAt": iso_or_none(run.started_at),
        "finishedAt": iso_or_none(run.finished_at),
        "entities": run.entities,
        "covered": run.covered,
        "failed": run.failed,
        "incomplete": run.incomplete,
        "skipped": run.skipped,
        "calls": run.calls,
        "rateLimitLeft": run.rate_limit_left,
        "error": run.error,
    }


@contextmanager
def run_progress(source_id: str) -> Iterator[Show]:
    """Show the progress of a run on stderr: as a bar on a terminal, else in plain lines."""
    if not sys.stderr.isatty():
        yield Lines(source_id).show
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[more]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as shown:
        task = shown.add_task(f"Collecting {source_id}", total=None, more="")

        def show(run: "RunRecord") -> None:
            done, more = run.covered + run.failed, run.wait(clocks.now()) or _further_counts(run)
            shown.update(task, completed=done, total=run.entities, more=more)

        yield show


class Lines:
    """Progress of a run in plain lines: one at the start, then one from time to time.

    A quick run is one line, however often its progress is read.
    """

    def __init__(
        self,
        source_id: str,
        clock: Callable[[], float] = time.monotonic,
        now: Clock = clocks.now,
    ) -> None:
        self._source_id = source_id
        self._clock = clock
        self._now = now
        self._wait = ""
        self._told: tuple[int, ...] | None = None
        self._at = clock()
        print_note(f"Collecting {source_id}")

    def show(self, run: "RunRecord") -> None:
        """Print the progress, unless printed a moment ago; the end is printed by the caller."""
        figures = (run.entities, run.covered, run.failed, run.calls)
        is_new = figures != self._told
        pause = _EVERY_SECONDS if is_new else _WAITING_SECONDS
        now = self._clock()
        wait = run.wait(self._now())
        is_wait_new, self._wait = bool(wait) and wait != self._wait, wait
        if run.finished_at is not None or (now - self._at < pause and not is_wait_new):
            return
        if wait:
            print_note(f"{self._source_id}: {wait}")
            self._told, self._at = figures, now
            return
        done, more = run.covered + run.failed, _further_counts(run)
        waits = "" if is_new else "; waiting"
        print_note(
            f"{self._source_id}: {done:,} of {run.entities:,} entities{more and ', '}{more}{waits}"
        )
        self._told, self._at = figures, now


def _further_counts(run: "RunRecord") -> str:
    """Further counts of the run: `3 failed, 45 calls`."""
    counts = ((run.failed, "failed"), (run.calls, "call" if run.calls == 1 else "calls"))
    return ", ".join(f"{count:,} {word}" for count, word in counts if count)
