"""`factbook sources`, `collect` and `worker`: sources as code, their state, and collection."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import msgspec
import typer

from factbook import clock as clocks
from factbook.cli.command_parts import (
    DEFAULT_SERVER,
    EXIT_CODES,
    PLAN_CODES,
    CommandError,
    DatabaseUrl,
    Json,
    Sections,
    Server,
    Token,
    confirm_writing,
    connect_server,
    format_age,
    print_answer,
    print_json,
    print_note,
    print_table,
    require_database,
    run_on_database,
    say,
    service_settings,
    settings_from,
    show_progress,
)
from factbook.clock import Clock, iso_or_none
from factbook.errors import InputError

if TYPE_CHECKING:
    from factbook.collection.lanes import LaneCollector
    from factbook.operations.commands import SourceDetail, SourceStatus
    from factbook.scheduling.runs import RunRecord
if TYPE_CHECKING:
    from factbook.cli.source_plans import SourceStep
    from factbook.client import Client


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

# Time between two lines with progress, and without.
_EVERY_SECONDS: Final = 10.0
_WAITING_SECONDS: Final = 60.0


class SourceTable(NamedTuple):
    """Column headings, and a row for each source."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def tabulate_sources(found: Sequence["SourceStatus"]) -> SourceTable:
    """Make columns and rows; has an owner column if any source has an owner."""
    rows: list[Sequence[object]] = list(map(_source_row, found))
    if not any(each.source.owner for each in found):
        return SourceTable(_SOURCE_COLUMNS, rows)
    (first, *more), owners = _SOURCE_COLUMNS, [each.source.owner for each in found]
    owned = [(id_, owner, *rest) for (id_, *rest), owner in zip(rows, owners, strict=True)]
    return SourceTable((first, "Owner", *more), owned)


def source_json(status: "SourceStatus") -> dict[str, Any]:
    """Convert the state of a source to JSON."""
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
        if wait:  # shows the limit that the run waits for
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
    from factbook.operations import commands

    settings = service_settings(database_url)
    uvloop.run(commands.run_collector(Backend.traced(settings), _sharing(settings.database_url)))


def _sharing(database_url: str) -> "type[LaneCollector] | None":
    """Return the collector for workers that share the work, if possible and installed."""
    if database_url.startswith("sqlite") or find_spec("dbos") is None:
        return None
    from factbook import process

    # DBOS imports croniter, which runs the program `file` on the interpreter.
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
    from factbook.operations import commands

    # The command itself reports how the run ended.
    settings = msgspec.structs.replace(settings_from(database_url), log_level="error")
    require_database(settings)
    with Backend.traced_meanwhile(settings) as service, run_progress(source) as show:
        run = asyncio.run(commands.collect_now(service, source, entity, show))
    if as_json:
        print_json(_run_json(run))
    else:
        say(f"{source}: {_run_figures(run)}")
    if run.state == "failed":
        raise CommandError(f"{source} returned nothing: {run.error}")


def list_sources(database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List the sources that are collected, with their health; `factbook sources` does the same.

    Where a group owns any of them, a column has the owners.

    \b
    Examples:
      factbook sources
      factbook sources list --json
    """
    from factbook.operations import commands

    found = run_on_database(database_url, commands.list_statuses)
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
    from factbook.operations import commands

    detail = run_on_database(database_url, commands.find_detail, source, failed=failed)
    if as_json:
        print_json(_detail_json(detail))
        return
    state, reason = detail.condition
    say(f"{source}: {state}{f'. {reason}' if reason else ''}")
    if detail.run is not None:
        say(f"Last run: {_run_figures(detail.run)}")
    if detail.gaps:
        print_table(
            ("Kind", "Reason", "Place", "Entities"),
            (
                (gap.kind, gap.reason, gap.place or "everything", gap.entities)
                for gap in detail.gaps
            ),
        )
    if detail.failed:
        print_table(("Entity", "Reason"), ((ref, reason) for ref, reason in detail.failed))


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
        """Print the progress unless printed a moment ago; the caller prints the end."""
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
    """Format further counts of the run: `3 failed, 45 calls`."""
    counts = ((run.failed, "failed"), (run.calls, "call" if run.calls == 1 else "calls"))
    return ", ".join(f"{count:,} {word}" for count, word in counts if count)


SourceType = Literal["http", "repository-file", "repository-directory", "entity", "push"]

app = typer.Typer(cls=Sections)

Places = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR|FILE", help="Files of YAML or JSON, or directories with them; - is stdin."
    ),
]
Draft = Annotated[
    bool, typer.Option("--draft", help="Save as drafts, which are collected only on demand.")
]
Prune = Annotated[
    bool, typer.Option("--prune", help="Delete custom sources that are in none of the files.")
]


@app.callback(invoke_without_command=True, epilog=EXIT_CODES)
def sources_group(
    context: typer.Context, database_url: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Define data sources in files; without a command, list the sources that are collected.

    \b
    Examples:
      factbook sources
      factbook sources new builds --type http
      factbook sources test builds.yaml --entity payments
      factbook sources apply sources/
    """
    if context.invoked_subcommand is None:
        list_sources(database_url, as_json)
    elif database_url is not None or as_json:
        raise InputError(f"Options of {context.invoked_subcommand} come after its name.")


app.command("list", epilog=EXIT_CODES)(list_sources)
app.command("show", epilog=EXIT_CODES)(show_source)


@app.command("new", epilog=EXIT_CODES)
def new_source(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Id of the source.")],
    *,
    type_: Annotated[
        SourceType, typer.Option("--type", help="Where its facts come from.", show_choices=True)
    ] = "http",
    owner: Annotated[
        str | None,
        typer.Option(
            metavar="GROUP",
            help="Group that owns it, and whose entities alone it is about: name, "
            "namespace/name or group:namespace/name.",
        ),
    ] = None,
    integration: Annotated[
        bool, typer.Option("--integration", help="Write a package in Python instead.")
    ] = False,
) -> None:
    """Write the file NAME.yaml: a definition to edit, with comments that say how.

    With --integration, write the folder factbook-NAME with an integration in Python and its test.

    \b
    Examples:
      factbook sources new builds
      factbook sources new on-call --type push --owner team-shop
      factbook sources new package-json --type repository-file
      factbook sources new acme --integration
    """
    from factbook.cli import source_plans
    from factbook.cli.definitions import write_new_file

    if integration:
        if owner is not None:
            raise InputError("--owner is for a definition: a package has no owner.")
        folder = Path(f"factbook-{name}")
        files = {
            folder / path: text for path, text in source_plans.integration_scaffold(name).items()
        }
        hint = f"Edit it, then run its test: pip install --editable './{folder}[test]', and pytest"
    else:
        file = Path(f"{name}.yaml")
        files = {file: source_plans.source_skeleton(name, type_, owner)}
        trial = f"try it: factbook sources test {file} --entity REF"
        # A trial shows extracted facts; sources of type push extract none.
        then = f"publish it: factbook sources apply {file}" if type_ == "push" else trial
        hint = f"Edit it, then {then}"
    for file, text in files.items():
        write_new_file(file, text)
    print_note(hint)


@app.command("plan", epilog=PLAN_CODES)
def plan_sources(
    context: typer.Context,
    places: Places,
    *,
    draft: Draft = False,
    prune: Prune = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Show how the sources of the server differ from those that files define.

    Nothing is written. Exit code 0 means that there is nothing to apply.

    \b
    Examples:
      factbook sources plan sources/
      factbook sources plan builds.yaml coverage.yaml
      factbook sources plan sources/ --prune || test $? = 5
    """
    from factbook.cli import definitions

    steps = _source_steps(partial(connect_server, context, server, token), places, draft, prune)
    definitions.report_plan(steps, as_json=as_json)


@app.command("apply", epilog=EXIT_CODES)
def apply_sources(
    context: typer.Context,
    places: Places,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before writing.")] = False,
    draft: Draft = False,
    prune: Prune = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Publish even if a fact is removed or its type changes."),
    ] = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
) -> None:
    """Bring the sources of the server in line with the files, and publish them.

    First shows what differs, as `plan` does, and asks. A refused source does not keep the others
    from being written; run it again to continue.

    \b
    Examples:
      factbook sources apply sources/
      factbook sources apply sources/ --yes --prune
      factbook sources apply builds.yaml --draft
    """
    from factbook.cli import definitions, source_plans

    connect = partial(connect_server, context, server, token)
    steps = _source_steps(connect, places, draft, prune)
    definitions.print_plan(steps)
    if not steps:
        return
    if not force:
        source_plans.check_breaking(steps)
    if not yes:
        confirm_writing()
    with connect() as client:
        run = partial(source_plans.run_source_step, client=client, drafts=draft, force=force)
        definitions.apply_plan(steps, run)


@app.command("test", epilog=EXIT_CODES)
def try_sources(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File with definitions; each of them is tried.")
    ],
    *,
    entity: Annotated[
        str, typer.Option(metavar="REF", help="Entity: name, kind:name or kind:namespace/name.")
    ],
    recorded: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Replay the answer recorded there, or record it if there is none."
        ),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="With --recorded: record again instead of replaying.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Try definitions on one entity: show the request, the answer, and the facts in it.

    The server sends the request, and stores nothing. With --recorded it does so once; later the
    answer is read from the file, without a server. Exit code 1 means that there is no fact, or
    that one has a problem other than being absent from the answer.

    \b
    Examples:
      factbook sources test builds.yaml --entity payments
      factbook sources test builds.yaml --entity payments --recorded recorded/
      factbook sources test builds.yaml --entity payments --recorded recorded/ --record
    """
    from factbook.catalog.ref import parse_ref
    from factbook.cli import source_plans

    if record and recorded is None:
        raise InputError("--record needs --recorded, which says where.")
    ref = parse_ref(entity, kind="component")
    connect = partial(connect_server, context, server, token)
    read = source_plans.read_source_files([file])
    found = [
        (one, source_plans.try_source(one, ref, recorded, connect, renew=record)) for one in read
    ]
    if as_json:
        print_json([source_plans.source_trial_json(one, ref, trial) for one, trial in found])
    else:
        for one, trial in found:
            source_plans.print_source_trial(one, ref, trial)
    if failed := [one.id for one, trial in found if source_plans.has_trial_failed(one, trial)]:
        raise CommandError(f"Facts have problems: {', '.join(failed)}.")


def _source_steps(
    connect: Callable[[], AbstractContextManager["Client"]],
    places: list[str],
    drafts: bool,
    prune: bool,
) -> list["SourceStep"]:
    from factbook.cli import source_plans

    with show_progress("Reading") as show:
        read = source_plans.read_source_files(places)
        show(f"Comparing {len(read):,} definitions")
        with connect() as client:
            return source_plans.plan_sources_of(client, read, drafts=drafts, prune=prune)
