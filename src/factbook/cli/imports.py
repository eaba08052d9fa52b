"""`factbook import`: entities from other systems into the catalog, on the database itself."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factbook.cli.connection import DatabaseUrl, run_on_database
from factbook.cli.import_kinds import (
    PART_COLUMNS,
    Plan,
    check_reports,
    import_aws,
    import_catalog,
    import_gitea,
    import_github,
    import_gitlab,
    import_kubernetes,
    import_ldif,
    part_json,
    part_name,
    part_row,
    print_report,
    report_json,
    run_imports,
)
from factbook.cli.output import (
    EXIT_CODES,
    CommandError,
    Json,
    format_age,
    print_answer,
    print_json,
    print_table,
    say,
)
from factbook.clock import SECOND, iso_or_none, now
from factbook.errors import suggestion

if TYPE_CHECKING:
    from factbook.backend import Backend
    from factbook.importers.management import ImporterDetail, ImporterStatus
    from factbook.importers.records import ImportPartRecord, ImportRun
    from factbook.importers.runner import ImportReport


PartName = Annotated[
    str, typer.Argument(metavar="PART", help="As listed, e.g. github/acme.repositories.")
]

ShownName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A part as listed, or the id of an importer, e.g. github."),
]

ImporterName = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Id of an importer, e.g. github-internal. All without it."),
]

app = typer.Typer(
    no_args_is_help=True,
    help="Import entities from other systems, and decide on removals that are held.",
    epilog=EXIT_CODES,
)


def importer_json(found: "ImporterDetail") -> dict[str, Any]:
    """The importer with its runs, and its parts with their problems."""
    status, stored = found.status, found.stored
    every = status.importer.every if status else None
    return {
        "importer": found.id,
        "state": _importer_state(found),
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
    say(f"{found.id}: {', '.join(_describe_importer(found))}")
    if found.problem:
        say(found.problem)
    print_table(["Run", "State", "Why", "Calls", "Left", "Error"], map(_run_row, found.runs[:10]))
    print_table(PART_COLUMNS, map(part_row, found.current))
    for part in found.current:
        for problem in part.problems:
            say(str(problem))


def _describe_importer(found: "ImporterDetail") -> Iterator[str]:
    yield _importer_state(found)
    if found.status is not None:
        yield f"last complete run {format_age(found.status.complete_at) or 'never'}"
        yield f"next run {_next_run(found.status)}"
    if found.stored is not None:
        yield f"last changed by {found.stored.updated_by}"


def _importer_state(found: "ImporterDetail") -> str:
    if found.status is not None:
        return found.status.state
    return "unusable" if found.problem else "not run by the service"


def _next_run(status: "ImporterStatus") -> str | None:
    if status.under_way is None and status.next_at is None:
        return "when asked"
    return format_age(status.next_at) if (status.next_at or 0) > now() else "now"


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
    return (format_age(run.started_at), run.state, run.reason, run.calls, run.calls_left, run.error)


def list_imports(database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List every part that was imported, with the state of its last reading.

    \b
    Examples:
      factbook import list
      factbook import list --json
    """
    from factbook.operations import imports

    found = run_on_database(database_url, imports.import_parts)
    rows = map(part_row, found)
    print_answer(list(map(part_json, found)), PART_COLUMNS, rows, as_json=as_json)


def show_import(name: ShownName, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Show an importer with its runs, or the problems and the held removals of a part.

    \b
    Examples:
      factbook import show github
      factbook import show github/acme.repositories --json
    """
    if "/" not in name:
        _print_importer(name, database_url, as_json=as_json)
        return
    part = _find_part(name, database_url)
    if as_json:
        print_json(part_json(part))
        return
    say(f"{part_name(part)}: {part.state}, read {format_age(part.read_at)}")
    for problem in part.problems:
        say(str(problem))
    _print_held(part)


def apply_removals(name: PartName, database_url: DatabaseUrl = None) -> None:
    """Remove the entities whose removal is held, and list them.

    \b
    Examples:
      factbook import apply github/acme.repositories
    """
    from factbook.operations import imports

    _decide_removals(imports.remove_held, name, database_url, "are left")


def discard_removals(name: PartName, database_url: DatabaseUrl = None) -> None:
    """Keep the entities whose removal is held, until they are found and are missing once more.

    \b
    Examples:
      factbook import discard github/acme.repositories
    """
    from factbook.operations import imports

    _decide_removals(imports.keep_held, name, database_url, "stay")


def _decide_removals(
    decision: "Callable[[Backend, str, str], Coroutine[Any, Any, ImportPartRecord]]",
    name: str,
    database_url: str | None,
    result: str,
) -> None:
    """List the held removals of a part, and decide on just these."""
    part = _find_part(name, database_url)
    _print_held(part)
    record = run_on_database(database_url, decision, name, part.tag)
    say(f"{part_name(record)}: {record.items:,} entities {result}.")


def _print_importer(name: str, database_url: str | None, *, as_json: bool) -> None:
    from factbook.operations import imports

    found = run_on_database(database_url, imports.importer_detail, name)
    if as_json:
        print_json(importer_json(found))
    else:
        print_importer(found)


def _find_part(name: str, database_url: str | None) -> "ImportPartRecord":
    """The part of this name; raises CommandError if there is none."""
    from factbook.operations import imports

    known = {part_name(one): one for one in run_on_database(database_url, imports.import_parts)}
    found = known.get(name.removeprefix("import/"))
    if found is None:
        raise CommandError(f'There is no part "{name}".{suggestion(name, known)}')
    return found


def _print_held(part: "ImportPartRecord") -> None:
    if part.held:
        say(f"Held, because {part.reason}:")
        print_table(["Entity"], ((ref,) for ref in part.held))


def run_importers(
    name: ImporterName = None,
    *,
    plan: Plan = False,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import with the importers of the settings, and with those made in the browser, now.

    The table [importers.github.internal] has the id github-internal, and [importers.github.default]
    the id github.

    \b
    Examples:
      factbook import run --plan
      factbook import run github
    """
    from factbook.operations import imports

    async def work(backend: "Backend", show: Callable[[str], None]) -> "list[ImportReport]":
        return await imports.import_configured(backend, name, plan=plan, show=show)

    found = run_imports(work, database_url)
    if as_json:
        print_json([report_json(one, plan=plan) for one in found])
    else:
        for one in found:
            print_report(one, plan=plan)
    check_reports(found)


# A command for each kind of importer, and one for those of the settings.
_COMMANDS: Mapping[str, Callable[..., object]] = {
    "run": run_importers,
    "aws": import_aws,
    "catalog": import_catalog,
    "gitea": import_gitea,
    "github": import_github,
    "gitlab": import_gitlab,
    "kubernetes": import_kubernetes,
    "ldif": import_ldif,
    "list": list_imports,
    "show": show_import,
    "apply": apply_removals,
    "discard": discard_removals,
}
for name, command in _COMMANDS.items():
    app.command(name, epilog=EXIT_CODES)(command)
