"""Connections to a server or the database: their options, and their errors as failures."""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar

import typer

from factbook.cli.output import (
    NOT_AUTHORISED,
    NOT_REACHABLE,
    REFUSED,
    USAGE,
    CommandError,
    print_note,
)

if TYPE_CHECKING:
    from factbook.backend import Backend
    from factbook.client import ApiError, Client, ClientError
    from factbook.settings import Settings


DEFAULT_SERVER = "http://127.0.0.1:8000"

Server = Annotated[
    str, typer.Option("--server", envvar="FACTBOOK_SERVER", help="Address of the server.")
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="FACTBOOK_TOKEN",
        help="API token. The variable keeps it out of the list of processes.",
    ),
]
PushWord = Annotated[
    str,
    typer.Option(
        "--push-word",
        envvar="FACTBOOK_PUSH_WORD",
        help="The path word of the server's push interface: its setting push_word.",
    ),
]

_HINTS = {
    401: "Give a token with --token or FACTBOOK_TOKEN; `factbook token create` makes one.",
    403: "`factbook token create NAME --permission PERMISSION` creates a more powerful token.",
}

P = ParamSpec("P")
T = TypeVar("T")

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        help="Where everything is stored: sqlite:///PATH or postgresql://... "
        "FACTBOOK_DATABASE_URL and factbook.toml say it too.",
    ),
]


@contextmanager
def connect_server(
    context: typer.Context,
    server: str,
    token: str | None,
    push_word: str = "factbook",
    where: Callable[[str], str] = str,
) -> Iterator["Client"]:
    """A client of the server; its errors inside the block become a Failure.

    `where` locates the item that a JSON path of a push names in its file.
    """
    # Importing HTTP takes longer than all the rest of the command line, and `--help` needs none.
    from factbook.client import Client, ClientError

    try:
        client = Client(server, token, push_word=push_word, transport=context.obj)
    except ValueError as error:
        raise CommandError(str(error), USAGE) from None
    with client:
        try:
            yield client
        except ClientError as error:
            raise _failed_request(error, where) from None


def _failed_request(error: "ClientError", where: Callable[[str], str]) -> CommandError:
    from factbook.client import ApiError, ConnectionFailed

    if isinstance(error, ConnectionFailed):
        hint = "Start one with `factbook serve`, or name another with --server or FACTBOOK_SERVER."
        return CommandError(str(error), NOT_REACHABLE, hint=hint)
    if isinstance(error, ApiError):
        return _refused_request(error, where)
    return CommandError(str(error), REFUSED)


def _refused_request(error: "ApiError", where: Callable[[str], str]) -> CommandError:
    # The server's message repeats the first of its problems or conflicts, so a list replaces it.
    if error.status in _HINTS:
        return CommandError(error.message, NOT_AUTHORISED, hint=_HINTS[error.status])
    if problems := error.details.get("problems"):
        lines = [f"{where(problem['path'])}: {problem['message']}" for problem in problems]
        return CommandError(f"{format_count(lines, 'problem')}, nothing was written:", lines=lines)
    if conflicts := error.details.get("conflicts"):
        lines = [f"{conflict['entityRef']}, held by {conflict['owner']}" for conflict in conflicts]
        message = f"{format_count(lines, 'conflict')} with other owners, nothing was written:"
        return CommandError(
            message, lines=lines, hint="--on-conflict take moves them into this set."
        )
    return CommandError(error.message)


def format_count(lines: Sequence[str], noun: str) -> str:
    """Format a count with its noun: `1 problem`, `2 problems`."""
    return f"{len(lines)} {noun}{'' if len(lines) == 1 else 's'}"


def confirm_writing() -> None:
    """Ask before writing; raises Failure for anything but yes."""
    try:
        if typer.confirm("Write this?", err=True):
            return
    except typer.Abort:
        print_note("")
    raise CommandError("Nothing was written. --yes writes without asking.")


def settings_from(database_url: str | None, **flags: object) -> "Settings":
    """The settings in force, with these flags above file and environment."""
    # Not needed for `--help`, whose time counts.
    from factbook.settings.table import load_settings

    return load_settings({"database_url": database_url, **flags})


def service_settings(database_url: str | None, **flags: object) -> "Settings":
    """The settings of a process of the service, which refuses misspelled variables."""
    from factbook.settings.table import refuse_misspelled_variables

    for variable in refuse_misspelled_variables():
        print_note(f"Warning: the variable {variable} is no setting and is not read.")
    return settings_from(database_url, **flags)


def run_on_database(
    database_url: str | None,
    work: "Callable[Concatenate[Backend, P], Coroutine[Any, Any, T]]",
    *arguments: P.args,
    **named: P.kwargs,
) -> T:
    """Run a command of `operations.commands` on the database of the settings in force."""
    import asyncio

    # See service.serve.
    from factbook.backend import Backend

    return asyncio.run(work(Backend.of(settings_from(database_url)), *arguments, **named))
