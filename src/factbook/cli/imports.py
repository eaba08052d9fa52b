"""`factbook import`: entities from other systems into the catalog, on the database itself."""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from factbook.cli.failures import EXIT_CODES, CommandError
from factbook.cli.local import DatabaseUrl, on_database, settings_from
from factbook.cli.output import (
    Json,
    age,
    note,
    note_each,
    print_answer,
    print_json,
    print_table,
    progress,
    say,
)
from factbook.clock import iso_or_none

if TYPE_CHECKING:
    from factbook.backend import Backend
    from factbook.importers.part_store import ImportPartRecord
    from factbook.importers.writer import PartResult
    from factbook.operations.imports import ImportReport

app = typer.Typer(
    no_args_is_help=True,
    help="Import entities from other systems, and decide on removals that are held.",
    epilog=EXIT_CODES,
)

PartName = Annotated[
    str, typer.Argument(metavar="PART", help="As listed, e.g. github/acme.repositories.")
]


Organizations = Annotated[
    list[str] | None,
    typer.Option("--org", metavar="LOGIN", help="Organization; may be given several times."),
]
Plan = Annotated[bool, typer.Option("--plan", help="Write nothing; show what would change.")]
Archived = Annotated[
    bool, typer.Option("--archived", help="Import archived repositories, as deprecated.")
]
People = Annotated[bool, typer.Option("--people/--no-people", help="Import teams and members.")]
Instance = Annotated[
    str,
    typer.Option(metavar="NAME", help="Table [integrations.github.NAME] with the credential."),
]
GithubToken = Annotated[
    str | None,
    typer.Option(
        "--github-token",
        envvar="GITHUB_TOKEN",
        show_envvar=True,
        help="Token, if the settings have no such table.",
    ),
]
Host = Annotated[str, typer.Option(help="Host of GitHub, if the settings have no such table.")]


@app.command(epilog=EXIT_CODES)
def github(
    *,
    org: Organizations = None,
    plan: Plan = False,
    archived: Archived = False,
    forks: Annotated[bool, typer.Option("--forks", help="Import forks.")] = False,
    people: People = True,
    instance: Instance = "default",
    token: GithubToken = None,
    host: Host = "github.com",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the repositories, teams and members of GitHub organizations.

    Repositories with a catalog-info.yaml bring its entities, others a component each. Entities that
    a push owns stay as they are. Many removals at once wait: see `factbook import apply`.

    \b
    Examples:
      export GITHUB_TOKEN=...
      factbook import github --org acme --plan
      factbook import github --org acme
    """
    import asyncio

    from factbook.backend import Backend
    from factbook.operations import imports
    from factbook.operations.imports import GithubInstance

    chosen: dict[str, Any] = {"archived": archived, "forks": forks, "people": people}
    if org:
        chosen["organizations"] = tuple(org)
    settings = msgspec.structs.replace(settings_from(database_url), log_level="error")
    with Backend.traced_meanwhile(settings) as backend, progress("Reading") as show:
        given = GithubInstance(instance, token, host)
        reading = imports.import_github(backend, given, chosen, plan=plan, show=show)
        report = asyncio.run(reading)
    if as_json:
        print_json(_as_json(report, plan=plan))
    else:
        _show(report, plan=plan)
    if not all(one.record.state != "partial" for one in report.parts):
        raise CommandError("Not everything could be read; what could not stays as it was.")


@app.command("list", epilog=EXIT_CODES)
def list_(database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List every part that was imported, with the state of its last reading.

    \b
    Examples:
      factbook import list
      factbook import list --json
    """
    from factbook.operations import imports

    found = on_database(database_url, imports.import_parts)
    columns = ["Part", "State", "Read", "Last complete", "Entities", "Problems", "Held"]
    print_answer(list(map(_part, found)), columns, map(_row, found), as_json=as_json)


@app.command(epilog=EXIT_CODES)
def show(name: PartName, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Show the problems and the held removals of a part.

    \b
    Examples:
      factbook import show github/acme.repositories
      factbook import show github/acme.repositories --json
    """
    part = _shown(name, database_url)
    if as_json:
        print_json(_part(part))
        return
    say(f"{_name(part)}: {part.state}, read {age(part.read_at)}")
    for problem in part.problems:
        say(str(problem))
    _show_held(part)


@app.command(epilog=EXIT_CODES)
def apply(name: PartName, database_url: DatabaseUrl = None) -> None:
    """Remove the entities whose removal is held, and list them.

    \b
    Examples:
      factbook import apply github/acme.repositories
    """
    from factbook.operations import imports

    _decide(imports.apply_held, name, database_url, "are left")


@app.command(epilog=EXIT_CODES)
def discard(name: PartName, database_url: DatabaseUrl = None) -> None:
    """Keep the entities whose removal is held, until they are found and are missing once more.

    \b
    Examples:
      factbook import discard github/acme.repositories
    """
    from factbook.operations import imports

    _decide(imports.discard_held, name, database_url, "stay")


def _decide(
    decision: "Callable[[Backend, str, int], Coroutine[Any, Any, ImportPartRecord]]",
    name: str,
    database_url: str | None,
    result: str,
) -> None:
    """List the held removals of a part, and decide on just these."""
    part = _shown(name, database_url)
    _show_held(part)
    record = on_database(database_url, decision, name, part.read_at)
    say(f"{_name(record)}: {record.items:,} entities {result}.")


def _shown(name: str, database_url: str | None) -> "ImportPartRecord":
    """The part of this name; raises CommandError if there is none."""
    from factbook.operations import imports

    for one in on_database(database_url, imports.import_parts):
        if _name(one) == name.removeprefix("import/"):
            return one
    raise CommandError(f"There is no part {name}. See: factbook import list")


def _show_held(part: "ImportPartRecord") -> None:
    if part.held:
        say(f"Held, because {part.reason}:")
        print_table(["Entity"], ((ref,) for ref in part.held))


def _show(report: "ImportReport", *, plan: bool) -> None:
    columns = ["Part", "State", "Added", "Updated", "Removed", "Unchanged", "Held", "Problems"]
    print_table(columns, map(_result_row, report.parts))
    print_table(["Kind", "Change", "Entities"], _by_kind(report.parts))
    for word, count in sorted(report.snapshot.left_out.items()):
        say(f"Left out: {count:,} {word}")
    problems = [str(problem) for one in report.parts for problem in one.record.problems]
    if problems:
        note(f"Problems: {len(problems)}")
        note_each(problems)
    for one in report.parts:
        if one.record.held:
            note(f"{_name(one.record)}: {len(one.record.held)} removals are held, because")
            note(f"  {one.record.reason}. See: factbook import show {_name(one.record)}")
    left = "" if report.left is None else f"; {report.left:,} of the limit are left"
    say(f"{report.calls:,} calls{left}{' (plan: nothing was written)' if plan else ''}")


def _result_row(one: "PartResult") -> tuple[object, ...]:
    record, changes = one.record, one.changes
    counts = (changes[word] for word in ("added", "updated", "removed", "unchanged"))
    return (_name(record), record.state, *counts, len(record.held), record.problem_count)


def _by_kind(parts: Sequence["PartResult"]) -> Iterator[tuple[object, ...]]:
    counts = Counter(
        (each.entity_ref.partition(":")[0], each.change) for one in parts for each in one.difference
    )
    for (kind, change), count in sorted(counts.items()):
        yield kind, change, count


def _as_json(report: "ImportReport", *, plan: bool) -> dict[str, Any]:
    return {
        "importer": report.importer,
        "plan": plan,
        "calls": report.calls,
        "limitLeft": report.left,
        "leftOut": dict(report.snapshot.left_out),
        "parts": [
            _part(one.record)
            | {
                "changes": dict(one.changes),
                "difference": [
                    {"entityRef": each.entity_ref, "change": each.change} for each in one.difference
                ],
            }
            for one in report.parts
        ],
    }


def _row(record: "ImportPartRecord") -> tuple[object, ...]:
    times = age(record.read_at), age(record.complete_at)
    counts = record.items, record.problem_count, len(record.held)
    return (_name(record), record.state, *times, *counts)


def _part(record: "ImportPartRecord") -> dict[str, Any]:
    return {
        "part": _name(record),
        "state": record.state,
        "readAt": iso_or_none(record.read_at),
        "completeAt": iso_or_none(record.complete_at),
        "entities": record.items,
        "problemCount": record.problem_count,
        "problems": [problem._asdict() for problem in record.problems],
        "held": list(record.held),
        "reason": record.reason or None,
    }


def _name(record: "ImportPartRecord") -> str:
    return f"{record.importer}/{record.part}"
