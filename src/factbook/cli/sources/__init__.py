"""`factbook sources`: sources as code, and the state of collected ones."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from factbook.cli import collection
from factbook.cli.connection import DEFAULT_SERVER, Server, Token, confirm, connected
from factbook.cli.failures import EXIT_CODES, PLAN_CODES, CommandError
from factbook.cli.local import DatabaseUrl
from factbook.cli.output import Json, note, print_json, progress
from factbook.cli.sections import Sections
from factbook.cli.sources.types import Type
from factbook.errors import InputError

if TYPE_CHECKING:
    from factbook.cli.sources.change_plan import SourceStep
    from factbook.client import Client

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
def sources(
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
        collection.sources(database_url, as_json)
    elif database_url is not None or as_json:
        raise InputError(f"Options of {context.invoked_subcommand} come after its name.")


app.command("list", epilog=EXIT_CODES)(collection.sources)
app.command("show", epilog=EXIT_CODES)(collection.show_source)


@app.command(epilog=EXIT_CODES)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Id of the source.")],
    *,
    type_: Annotated[
        Type, typer.Option("--type", help="Where its facts come from.", show_choices=True)
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
    from factbook.cli.definition_files import write
    from factbook.cli.sources import scaffolds

    if integration:
        if owner is not None:
            raise InputError("--owner is for a definition: a package has no owner.")
        folder = Path(f"factbook-{name}")
        files = {folder / path: text for path, text in scaffolds.scaffold(name).items()}
        hint = f"Edit it, then run its test: pip install --editable './{folder}[test]', and pytest"
    else:
        file = Path(f"{name}.yaml")
        files = {file: scaffolds.skeleton(name, type_, owner)}
        trial = f"try it: factbook sources test {file} --entity REF"
        # A trial shows what is extracted, and of what is pushed nothing is.
        then = f"publish it: factbook sources apply {file}" if type_ == "push" else trial
        hint = f"Edit it, then {then}"
    for file, text in files.items():
        write(file, text)
    note(hint)


@app.command(epilog=PLAN_CODES)
def plan(
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
    from factbook.cli import definition_plan

    steps = _steps(partial(connected, context, server, token), places, draft, prune)
    definition_plan.report(steps, as_json=as_json)


@app.command(epilog=EXIT_CODES)
def apply(
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
    from factbook.cli import definition_plan
    from factbook.cli.sources import change_plan

    connect = partial(connected, context, server, token)
    steps = _steps(connect, places, draft, prune)
    definition_plan.show(steps)
    if not steps:
        return
    if not force:
        change_plan.check_breaking(steps)
    if not yes:
        confirm()
    with connect() as client:
        run = partial(change_plan.run, client=client, drafts=draft, force=force)
        definition_plan.apply(steps, run)


@app.command("test", epilog=EXIT_CODES)
def try_(
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
    from factbook.catalog.ref import parse
    from factbook.cli.sources import files, trials

    if record and recorded is None:
        raise InputError("--record needs --recorded, which says where.")
    ref = parse(entity, kind="component")
    connect = partial(connected, context, server, token)
    read = files.read([file])
    found = [(one, trials.tried(one, ref, recorded, connect, renew=record)) for one in read]
    if as_json:
        print_json([trials.as_json(one, ref, trial) for one, trial in found])
    else:
        for one, trial in found:
            trials.show(one, ref, trial)
    if failed := [one.id for one, trial in found if trials.has_failed(one, trial)]:
        raise CommandError(f"Facts have problems: {', '.join(failed)}.")


def _steps(
    connect: Callable[[], AbstractContextManager["Client"]],
    places: list[str],
    drafts: bool,
    prune: bool,
) -> list["SourceStep"]:
    """Steps that make the server match the files."""
    from factbook.cli.sources import change_plan, files

    with progress("Reading") as show:
        read = files.read(places)
        show(f"Comparing {len(read):,} definitions")
        with connect() as client:
            return change_plan.plan(client, read, drafts=drafts, prune=prune)
