"""`factbook serve`, `migrate` and `confirm-clock`: operation of the service."""

from datetime import datetime
from typing import Annotated

import typer

from factbook.cli.failures import REFUSED
from factbook.cli.local import DatabaseUrl, on_database, service_settings, settings_from
from factbook.cli.output import note, say


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of processes.")] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Run the service, after bringing its database up to date.

    \b
    Examples:
      factbook serve
      factbook serve --host 0.0.0.0 --port 8080 --workers 4
      factbook serve --database-url postgresql://factbook@db/factbook
    """
    # The service is imported by the commands that are part of it, not by those that talk to one.
    from factbook.operations import server

    server.serve(service_settings(database_url, host=host, port=port, workers=workers))


def migrate(
    check: Annotated[
        bool,
        typer.Option("--check", help="Change nothing: print what would be applied, exit 1 if any."),
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Bring the database up to date, and print what was applied. `serve` does so by itself.

    The previous release keeps working meanwhile and afterwards.

    \b
    Examples:
      factbook migrate
      factbook migrate --check
      factbook migrate --database-url postgresql://factbook@db/factbook
    """
    from factbook.operations import server

    settings = settings_from(database_url)
    listed = server.pending(settings) if check else server.migrate(settings)
    for name in listed:
        say(name)
    if not listed:
        note("The database is up to date.")
    elif check:
        raise typer.Exit(REFUSED)


def confirm_clock(
    today: Annotated[
        datetime,
        typer.Argument(
            formats=["%Y-%m-%d"],
            metavar="TODAY",
            help="Today's date from somewhere other than this machine, e.g. 2026-11-21.",
        ),
    ],
    database_url: DatabaseUrl = None,
) -> None:
    """Confirm that the clock is right after a leap, so that old data is deleted again.

    When the clock is three weeks or more ahead of the last housekeeping, nothing is deleted by
    age: either the service was down for so long, or the clock is wrong and the history would be
    lost. `factbook doctor` says when that is so. Refused where this machine's clock does not
    show TODAY. The next round, within ten minutes, deletes what is too old.

    \b
    Examples:
      factbook confirm-clock 2026-11-21
    """
    from factbook.clock import iso
    from factbook.operations import commands

    before = on_database(database_url, commands.confirm_clock, today.date())
    note(f"The clock is believed. Before, nothing was deleted by a later time than {iso(before)}.")
