"""`factbook worker`, `collect` and `sources`: collection on the database itself."""

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from factbook.cli.failures import CommandError
from factbook.cli.local import DatabaseUrl, settings_from
from factbook.cli.output import Json, print_json, print_table, progress_bar, say
from factbook.clock import iso, now

if TYPE_CHECKING:
    from factbook.operations.commands import Status
    from factbook.scheduling.runs import RunRecord


def worker(database_url: DatabaseUrl = None) -> None:
    """Collect facts from the configured sources, until told to stop.

    `serve` does so by itself, in one of its processes. On PostgreSQL any number of workers, on any
    number of machines, share the work; on SQLite they run beside the server.

    \b
    Examples:
      factbook worker
      factbook worker --database-url postgresql://factbook@db/factbook
    """
    import uvloop

    from factbook import app
    from factbook.operations import commands

    uvloop.run(commands.work(app.traced(settings_from(database_url))))


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
    """Collect the facts of one source now.

    \b
    Examples:
      factbook collect github
      factbook collect github --entity payments
    """
    import asyncio

    from factbook import app
    from factbook.operations import commands

    # How the run ends is what the command itself says.
    settings = msgspec.structs.replace(settings_from(database_url), log_level="error")
    with (
        app.traced_meanwhile(settings) as service,
        progress_bar(f"Collecting {source}") as show,
    ):

        def shown(run: "RunRecord") -> None:
            show(run.covered + run.failed, run.entities)

        run = asyncio.run(commands.collect(service, source, entity, shown))
    if as_json:
        print_json(_run(run))
    else:
        say(
            f"{source}: {run.covered} covered, {run.failed} failed, {run.skipped} skipped; "
            f"{run.calls} calls in {(run.duration or 0) / 1000:.1f} s"
        )
    if run.state == "failed":
        raise CommandError(f"{source} brought nothing: {run.error}")


def sources(database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List the sources that are collected, with their health; `factbook sources` does the same.

    \b
    Examples:
      factbook sources
      factbook sources list --json
    """
    import asyncio

    from factbook import app
    from factbook.operations import commands

    service = app.application(settings_from(database_url))
    found = asyncio.run(commands.statuses(service))
    if as_json:
        print_json([_status(status) for status in found])
    else:
        print_table(_COLUMNS, map(_row, found))


_COLUMNS = (
    "Source",
    "State",
    "Last success",
    "Covered",
    "Failed",
    "Skipped",
    "Calls",
    "Limit left",
    "Took",
    "Next run",
    "Problem",
)


def _row(status: "Status") -> tuple[object, ...]:
    from factbook.facts import health

    known, next_run = status.health, _time(status.next_run)
    if known is None:
        return (status.source.id, "new", *[None] * 7, next_run, None)
    last, state = known.last, health.state(known)
    figures: tuple[object, ...] = (None,) * 6
    if last is not None:
        took = f"{(last.duration or 0) / 1000:.1f} s"
        counts = (last.covered, last.failed, last.skipped)
        figures = (*counts, last.calls, last.rate_limit_left, took)
    shown = f"{state}, running" if known.running else state
    succeeded, problem = _time(known.succeeded_at), last and last.error
    return (status.source.id, shown, succeeded, *figures, next_run, problem)


def _status(status: "Status") -> dict[str, Any]:
    from factbook.facts import health

    source, known, next_run = status
    shown = {"id": source.id, "title": source.title, "cadence": source.cadence}
    if known is None:
        return shown | {"health": {"state": "new", "nextRun": _time(next_run)}}
    return shown | {"health": health.render(source, known, now())}


def _run(run: "RunRecord") -> dict[str, Any]:
    return {
        "source": run.source_id,
        "state": run.state,
        "startedAt": _time(run.started_at),
        "finishedAt": _time(run.finished_at),
        "entities": run.entities,
        "covered": run.covered,
        "failed": run.failed,
        "skipped": run.skipped,
        "calls": run.calls,
        "rateLimitLeft": run.rate_limit_left,
        "error": run.error,
    }


def _time(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else iso(milliseconds)
