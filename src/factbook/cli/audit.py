"""`factbook audit`: the audit, read from the database itself."""

import sys
from typing import Annotated

import typer

from factbook.cli.failures import EXIT_CODES
from factbook.cli.local import DatabaseUrl, on_database
from factbook.cli.output import note, until_enough
from factbook.clock import milliseconds
from factbook.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Who did what, and what was refused.")


@app.callback()
def _group() -> None:
    """Export the audit of actions and refusals."""


@app.command(epilog=EXIT_CODES)
def export(
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only from this time on: ISO 8601 with a UTC offset."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only up to and including this time.")
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Only after the line with this cursor."),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Continue until stopped, printing each record five minutes after it was made: "
            "none is missed that way.",
        ),
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Print the audit as JSON lines, the oldest record first.

    \b
    Examples:
      factbook audit export --since 2026-11-01T00:00:00Z > november.jsonl
      factbook audit export --follow --after 1795262400000/0000000012345678
    """
    from factbook.operations import commands

    if follow and until is not None:
        raise InputError("--follow does not end: leave out --until.")
    begin, end = _moment("--since", since), _moment("--until", until)
    with until_enough():
        on_database(
            database_url, commands.export_audit, _write, after,
            since=begin, until=end, follow=follow, warn=note,
        )  # fmt: skip


def _write(lines: bytes) -> None:
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


def _moment(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    moment = milliseconds(text)
    if moment is None:
        raise InputError(f'{name} is a time such as 2026-11-01T00:00:00Z, not "{text}".')
    return moment
