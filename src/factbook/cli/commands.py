"""Every command of `factbook`, and the parser of its command line.

Slow imports happen inside the commands that need them, so that `--help` and shell completion answer
at once.
"""

from typing import Annotated

import typer

from factbook import __version__
from factbook.cli import access, checks, imports, sources
from factbook.cli import events as event_commands
from factbook.cli.agent_setup import connect
from factbook.cli.collection import collect, worker
from factbook.cli.entity_push import push, sets, validate
from factbook.cli.events import events
from factbook.cli.facts import facts, push_facts
from factbook.cli.output import EXIT_CODES, Commands
from factbook.cli.query import call, entities, facets
from factbook.cli.service import (
    backup,
    confirm_clock,
    distribute,
    doctor,
    migrate,
    partition,
    restore,
    serve,
)

COMMANDS = (
    serve,
    worker,
    migrate,
    backup,
    restore,
    doctor,
    confirm_clock,
    partition,
    distribute,
    push,
    validate,
    sets,
    entities,
    facets,
    facts,
    call,
    events,
    push_facts,
    collect,
    connect,
)

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
    # Plain help keeps its examples as they are written, and starts three times as fast.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in COMMANDS:
    app.command(epilog=EXIT_CODES)(command)
app.add_typer(sources.app, name="sources", epilog=EXIT_CODES)
app.add_typer(checks.app, name="checks", epilog=EXIT_CODES)
app.add_typer(imports.app, name="import", epilog=EXIT_CODES)
app.add_typer(access.tokens_app, name="token")
app.add_typer(access.people_app, name="people")
app.add_typer(event_commands.webhooks_app, name="webhooks")
app.add_typer(event_commands.digests_app, name="digests")
app.add_typer(access.audit_app, name="audit")


def _version(asked: bool) -> None:
    if asked:
        print(f"factbook {__version__}")
        raise typer.Exit


@app.callback()
def factbook(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """A software catalog that agents and people can ask for facts.

    \b
    Examples:
      factbook serve
      export FACTBOOK_TOKEN=$(factbook token create laptop)
      factbook push services catalog.yaml
      factbook facts payments
    """
