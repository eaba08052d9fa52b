"""`factbook sources`: sources as code, and the state of collected ones."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from factbook.cli import collection
from factbook.cli.connection import (
    DEFAULT_SERVER,
    DatabaseUrl,
    Server,
    Token,
    confirm_writing,
    connect_server,
)
from factbook.cli.output import (
    EXIT_CODES,
    PLAN_CODES,
    CommandError,
    Json,
    Sections,
    print_json,
    print_note,
    show_progress,
)
from factbook.errors import InputError

if TYPE_CHECKING:
    from factbook.cli.source_plans import SourceStep
    from factbook.client import Client


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
        collection.list_sources(database_url, as_json)
    elif database_url is not None or as_json:
        raise InputError(f"Options of {context.invoked_subcommand} come after its name.")


app.command("list", epilog=EXIT_CODES)(collection.list_sources)
app.command("show", epilog=EXIT_CODES)(collection.show_source)


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
        # A trial shows what is extracted, and of what is pushed nothing is.
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
    """Steps that make the server match the files."""
    from factbook.cli import source_plans

    with show_progress("Reading") as show:
        read = source_plans.read_source_files(places)
        show(f"Comparing {len(read):,} definitions")
        with connect() as client:
            return source_plans.plan_sources_of(client, read, drafts=drafts, prune=prune)
