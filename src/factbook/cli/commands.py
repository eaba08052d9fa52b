"""Every command of `factbook`, and the parser of its command line.

Slow imports happen inside the commands that need them, so that `--help` and shell completion answer
at once.
"""

from typing import Annotated

import typer

from factbook import __version__
from factbook.cli import audit, checks, digests, imports, people, sources, tokens, webhooks
from factbook.cli.agent_setup import connect
from factbook.cli.backups import backup, restore
from factbook.cli.collection import collect, worker
from factbook.cli.diagnosis import doctor
from factbook.cli.entity_push import push, sets, validate
from factbook.cli.events import events
from factbook.cli.fact_push import push_facts
from factbook.cli.facts import facts
from factbook.cli.failures import EXIT_CODES, Commands
from factbook.cli.layout import distribute, partition
from factbook.cli.query import call, entities, facets
from factbook.cli.service import confirm_clock, migrate, serve

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
app.add_typer(tokens.app, name="token")
app.add_typer(people.app, name="people")
app.add_typer(webhooks.app, name="webhooks")
app.add_typer(digests.app, name="digests")
app.add_typer(audit.app, name="audit")


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
