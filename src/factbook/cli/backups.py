"""`factbook backup` and `factbook restore`: copies of a SQLite database, made locally."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from factbook.cli.local import DatabaseUrl, settings_from
from factbook.cli.output import note, progress_bar, say
from factbook.errors import InputError

if TYPE_CHECKING:
    from factbook.operations.backups.restoration import Restored


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
    from factbook.operations.backups import backup_commands

    settings = settings_from(database_url)
    with progress_bar("Copying") as show:
        made, with_key = backup_commands.backup(settings, to, show=show, replace=force, keep=keep)
    say(str(made))
    if with_key:
        note("It holds the key of tokens and secrets: keep it as safe as the service itself.")
    elif settings.token_key is not None:
        note("token_key of the settings is not in it: keep that elsewhere.")
    else:
        note("There is no key beside the database, so there is none in it.")


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
        from factbook.operations.backups import backup_commands

        place = asyncio.run(backup_commands.settle(Backend.of(settings)))
        say(
            "Settled: the feed of events starts over. Readers get 410 once and continue at the "
            f"cursor {place}.0."
        )
        return
    from factbook.operations.backups import backup_commands

    with progress_bar("Copying") as show:
        done, fits = backup_commands.restore(settings, file, show=show, replace=force)
    say(f"Restored: {file}")
    _tell(done, fits)


def _tell(done: "Restored", fits: bool) -> None:
    if done.aside is not None:
        note(f"What was there before is {done.aside}.")
    for name in done.migrations:
        note(f"Applied: {name}")
    for what in done.unrecognized:
        note(f"Not recognized: {what}.")
    if done.unrecognized:
        note("Find out why before you start the service: a trigger changes data on its own.")
    if done.note is not None and done.note.checksum is None:
        note("The backup has no checksum, as an earlier release made it.")
    if done.note is None:
        note("It was not made by `factbook backup`: the key beside the database is as it was.")
    elif not fits:
        note(
            "The backup was made under another token_key than the one in force: no token of it "
            "works, and its secrets cannot be opened, until token_key is that one."
        )
    note("Start the service. Tokens that were revoked since the backup are valid again.")
