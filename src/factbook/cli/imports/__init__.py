"""`factbook import`: entities from other systems into the catalog, on the database itself."""

import typer

from factbook.cli.failures import EXIT_CODES
from factbook.cli.imports import parts
from factbook.cli.imports.aws import aws
from factbook.cli.imports.catalog import catalog
from factbook.cli.imports.code_hosts import gitea, github, gitlab
from factbook.cli.imports.configured import run
from factbook.cli.imports.kubernetes import kubernetes
from factbook.cli.imports.ldif import ldif

# A command for each kind of importer, and one for those of the settings.
_KINDS = (aws, catalog, gitea, github, gitlab, kubernetes, ldif)
COMMANDS = (run, *_KINDS, parts.list_, parts.show, parts.apply, parts.discard)

app = typer.Typer(
    no_args_is_help=True,
    help="Import entities from other systems, and decide on removals that are held.",
    epilog=EXIT_CODES,
)
for command in COMMANDS:
    app.command(command.__name__.strip("_"), epilog=EXIT_CODES)(command)
