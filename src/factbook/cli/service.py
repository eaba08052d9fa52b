"""`factbook serve`, `migrate`, `backup`, `doctor` and others: operation of the service."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from factbook.cli.command_parts import (
    REFUSED,
    DatabaseUrl,
    Json,
    print_json,
    print_note,
    progress_bar,
    run_on_database,
    say,
    say_coloured,
    service_settings,
    settings_from,
    show_progress,
)
from factbook.errors import InputError

if TYPE_CHECKING:
    from factbook.operations.backups import Restored
    from factbook.operations.doctor.database import Finding


_STATE_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}

PlanOption = Annotated[
    bool, typer.Option("--plan", help="Change nothing: print the steps that are left to do.")
]


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
    # Only commands that run or operate the service import it, not those that call a server.
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
    listed = server.list_pending_migrations(settings) if check else server.migrate_now(settings)
    for name in listed:
        say(name)
    if not listed:
        print_note("The database is up to date.")
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
    age: the service may have been down that long, or the clock may be wrong and history would be
    lost. `factbook doctor` reports this state. The command refuses if this machine's clock does
    not show TODAY. The next round, within ten minutes, deletes what is too old.

    \b
    Examples:
      factbook confirm-clock 2026-11-21
    """
    from factbook.clock import iso
    from factbook.operations import commands

    before = run_on_database(database_url, commands.confirm_retention_clock, today.date())
    print_note(
        "The clock is trusted again. "
        f"Until now, nothing was deleted by a time later than {iso(before)}."
    )


def backup(
    to: Annotated[
        Path,
        typer.Argument(metavar="FILE|FOLDER", help="The file, or a folder to name one in."),
    ],
    *,
    keep: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Keep the newest N backups of the folder."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Copy a SQLite database while it is in use, with the key of its tokens and secrets.

    Prints the file. Anyone who can read it can do what the service can: it is readable only by
    its owner. A token_key from the settings is not in it. PostgreSQL has pg_dump.

    \b
    Examples:
      factbook backup /var/backups/factbook --keep 14
      factbook backup before-upgrade.db
    """
    from factbook.operations import backups

    settings = settings_from(database_url)
    with progress_bar("Copying") as show:
        made, with_key = backups.make_backup(settings, to, show=show, replace=force, keep=keep)
    say(str(made))
    if with_key:
        print_note("It holds the key of tokens and secrets: protect it like the service itself.")
    elif settings.token_key is not None:
        print_note("token_key of the settings is not in it: keep that elsewhere.")
    else:
        print_note("There is no key beside the database, so there is none in it.")


def restore(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A file made by `factbook backup`.")
    ] = None,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Move the existing database aside.")
    ] = False,
    already_restored: Annotated[
        bool,
        typer.Option(
            "--already-restored",
            help="The database was restored by other means, such as pg_restore: only finish the "
            "restore.",
        ),
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Replace a SQLite database with a backup, while the service is stopped.

    The backup is checked and migrated first. The old database is moved aside, not removed. The
    feed of events starts over: readers get 410 once, and webhooks continue with what happens
    from now on. Sessions and invitations end.

    \b
    Examples:
      factbook restore /var/backups/factbook/factbook-20261122T030000Z.db --force
      factbook restore --already-restored
    """
    if (file is None) != already_restored:
        raise InputError("Give a FILE, or --already-restored, and not both.")
    settings = settings_from(database_url)
    if file is None:
        import asyncio

        from factbook.backend import Backend
        from factbook.operations import backups

        place = asyncio.run(backups.settle_restored(Backend.of(settings)))
        say(
            "Restore finished. The event feed starts over: readers get 410 once, then continue at "
            f"the cursor {place}.0."
        )
        return
    from factbook.operations import backups

    with progress_bar("Copying") as show:
        done, fits = backups.restore_backup(settings, file, show=show, replace=force)
    say(f"Restored: {file}")
    _report_restored(done, fits)


def _report_restored(done: "Restored", fits: bool) -> None:
    if done.aside is not None:
        print_note(f"What was there before is {done.aside}.")
    for name in done.migrations:
        print_note(f"Applied: {name}")
    for what in done.unrecognized:
        print_note(f"Not recognized: {what}.")
    if done.unrecognized:
        print_note("Find out why before you start the service: a trigger changes data on its own.")
    if done.note is not None and done.note.checksum is None:
        print_note("The backup has no checksum, as an earlier release made it.")
    if done.note is None:
        print_note(
            "It was not made by `factbook backup`: the key beside the database is as it was."
        )
    elif not fits:
        print_note(
            "The backup was made with a different token_key. Its tokens and secrets do not work "
            "until you set token_key to that key."
        )
    print_note("Start the service. Tokens that were revoked since the backup are valid again.")


def doctor(
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not read a SQLite file to its end.")
    ] = False,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Check configuration, database, credentials, clocks and disk, and say what to do.

    Prints a line for each check: ok, warning or problem. Nothing is changed. Hosts of
    integrations get few requests: what a credential may read, and the facts of one entity. Exits
    with 1 when there is a problem; warnings alone exit with 0.

    \b
    Examples:
      factbook doctor
      factbook doctor --quick --json
    """
    import asyncio

    from factbook.operations.doctor.examination import examine
    from factbook.telemetry import logs

    found: list[Finding] = []

    async def work() -> None:
        with logs.silence_logs(), show_progress("Looking") as show:
            async for finding in examine({"database_url": database_url}, show, quick=quick):
                found.append(finding)
                if not as_json:
                    advice = f" {finding.advice}" if finding.advice else ""
                    line = f"{finding.state:<8} {finding.topic}: {finding.what}{advice}"
                    say_coloured(line.replace("\n", " "), _STATE_COLOURS[finding.state])

    asyncio.run(work())
    states = [finding.state for finding in found]
    if as_json:
        checks = [
            {"topic": finding.topic, "state": finding.state, "what": finding.what}
            | ({"advice": finding.advice} if finding.advice else {})
            for finding in found
        ]
        print_json({"ok": "problem" not in states, "checks": checks})
    else:
        say(f"{states.count('problem')} problems, {states.count('warning')} warnings.")
    if "problem" in states:
        raise typer.Exit(REFUSED)


def distribute(plan: PlanOption = False, database_url: DatabaseUrl = None) -> None:
    """Distribute facts and their history across the machines of a Citus cluster.

    The database has to be a Citus coordinator with registered workers. Facts are distributed by
    entity, and the catalog is copied to every machine. While the existing rows of a table are
    copied, writes to it wait. If interrupted, run it again; it resumes.

    \b
    Examples:
      factbook distribute --plan
      factbook distribute --database-url postgresql://factbook@coordinator/factbook
    """
    # See service.serve.
    from factbook.operations import layout

    settings = settings_from(database_url)
    steps = layout.list_distribution_steps(settings) if plan else None
    count = (
        _print_steps(steps)
        if steps is not None
        else layout.distribute_database(settings, _note_step)
    )
    if not count:
        print_note("Facts are distributed, and the catalog is on every machine.")


def partition(plan: PlanOption = False, database_url: DatabaseUrl = None) -> None:
    """Partition history and the audit by month, on PostgreSQL, while the service runs.

    Existing rows stay where they are and become the first partition, so this takes little disk
    space and no downtime. From then on, housekeeping creates the partitions of the coming months,
    and drops those whose rows have all expired. If interrupted, run it again; it resumes.

    \b
    Examples:
      factbook partition --plan
      factbook partition --database-url postgresql://factbook@db/factbook
    """
    # See service.serve.
    from factbook.operations import layout

    settings = settings_from(database_url)
    steps = layout.list_partition_steps(settings) if plan else None
    count = (
        _print_steps(steps)
        if steps is not None
        else layout.partition_database(settings, _note_step)
    )
    if not count:
        print_note("History and the audit are partitioned by month.")


def _print_steps(steps: Sequence[object]) -> int:
    """Print the steps of a plan; returns their number."""
    for step in steps:
        say(str(step))
    return len(steps)


def _note_step(step: object) -> None:
    print_note(str(step))
