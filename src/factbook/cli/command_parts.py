"""Parts that commands share: options, connections, output, failures and exit codes."""

import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, ParamSpec, TypeVar

import typer
from typer.core import TyperGroup

from factbook.clock import ago, milliseconds, minute, now
from factbook.errors import ConfigurationError, FactbookError, InputError

if TYPE_CHECKING:
    from factbook.schemas.common import AgedAnswer
    from factbook.schemas.results import NextSteps
if TYPE_CHECKING:
    from factbook.backend import Backend
    from factbook.client import ApiError, Client, ClientError
    from factbook.settings import Settings


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

# Wide enough for any row: programs that read a table from a pipe need unwrapped lines.
_PIPE_WIDTH = 10_000
_LINES_SHOWN = 100

_TITLES: Final = {
    frozenset({"database_url"}): "Commands on the database itself (--database-url)",
    frozenset({"server"}): "Commands that ask a server (--server, --token)",
    frozenset({"database_url", "server"}): "Commands of both kinds",
    frozenset[str](): "Commands that need neither database nor server",
}

REFUSED = 1
USAGE = 2
NOT_AUTHORISED = 3
NOT_REACHABLE = 4
# Exit code of a plan with differences, which scripts can distinguish from errors.
DIFFERENT = 5

EXIT_CODES = """\b
Exit codes:
  0  done
  1  the server or the tool said no
  2  wrong usage, or input that cannot be read
  3  not authorized: no token, an expired token, or a token that lacks a permission
  4  the server cannot be reached
"""
PLAN_CODES = f"{EXIT_CODES}  {DIFFERENT}  there is something to apply\n"


def printable(text: str) -> str:
    """Escape control characters, as text from a server must not control the terminal."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )


def print_note(message: str) -> None:
    """Print a message on stderr, after flushing stdout."""
    sys.stdout.flush()
    print(printable(message), file=sys.stderr)


def note_each(lines: Sequence[str]) -> None:
    """Print up to a hundred indented lines on stderr, and the number of further lines."""
    for line in lines[:_LINES_SHOWN]:
        print_note(f"  {line}")
    if len(lines) > _LINES_SHOWN:
        print_note(f"  and {len(lines) - _LINES_SHOWN} more")


def say(message: str) -> None:
    """Print a line of the answer on stdout."""
    print(printable(message))


def say_coloured(message: str, colour: str | None) -> None:
    """Print a line of the answer on stdout; in color on a terminal unless NO_COLOR is set."""
    plain = colour is None or os.environ.get("NO_COLOR")
    typer.secho(printable(message), fg=None if plain else colour)


def print_json(value: Any, *, indent: int = 2) -> None:
    """Print a value as JSON; on one line when `indent` is 0."""
    import msgspec

    encoded = msgspec.json.encode(value)
    print((msgspec.json.format(encoded, indent=indent) if indent else encoded).decode())


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows as a table; None becomes an empty cell."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in columns:
        # Folded, not truncated: users copy values from tables.
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else printable(str(cell))) for cell in row))
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    Console(file=sys.stdout, width=width, markup=False, emoji=False, highlight=False).print(table)


def print_answer(
    value: Any, columns: Sequence[str], rows: Iterable[Sequence[object]], *, as_json: bool
) -> None:
    """Print an answer: the value as JSON, or its rows as a table."""
    if as_json:
        print_json(value)
    else:
        print_table(columns, rows)


def format_age(moment: int | str | None, at: int | None = None) -> str | None:
    """Format a time relative to `at`, or now, for a table: `3 days ago`; None for None.

    The time is in milliseconds since the epoch, or a text from a server.
    """
    if isinstance(moment, str):
        text, moment = moment, milliseconds(moment)
        if moment is None:
            return text
    return None if moment is None else ago(moment, now() if at is None else at)


def as_of(answer: "AgedAnswer | NextSteps") -> str:
    """Format the age of figures as the end of a sentence; empty if the server doesn't say."""
    stale = f", stale: no new data from {', '.join(answer.stale_sources)}"
    at = answer.as_of and milliseconds(answer.as_of)
    return f"; as of {minute(at)}{stale if answer.stale_sources else ''}" if at else ""


def age_members(answer: "AgedAnswer | NextSteps") -> dict[str, Any]:
    """Convert the age of figures to members for `--json`."""
    return {"asOf": answer.as_of, "staleSources": answer.stale_sources}


@contextmanager
def show_progress(description: str) -> Iterator[Callable[[str], None]]:
    """Show activity on stderr if that is a terminal; yields a function that changes the text."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as shown:
        task = shown.add_task(description, total=None)
        yield lambda text: shown.update(task, description=text)


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr if that is a terminal; yields a function to update it.

    The function takes the number done and the total.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()
    console = Console(file=sys.stderr)
    with Progress(*columns, Left(), console=console, transient=True) as shown:
        task = shown.add_task(description, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextmanager
def until_enough() -> Iterator[None]:
    """End a printing block quietly when the command is stopped or its reader has gone."""
    try:
        yield
    except KeyboardInterrupt:
        return
    except BrokenPipeError:
        # Python flushes stdout at exit, which needs an open file.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Sections(TyperGroup):
    """Command group that lists its commands in sections, by their options."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each section with its commands, in their order."""
        listed = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in listed if not command.hidden]
        limit = formatter.width - 6 - max((len(name) for name, _ in shown), default=0)
        for needs, title in _TITLES.items():
            rows = [
                (name, command.get_short_help_str(limit))
                for name, command in shown
                if _required_options(command) == needs
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _required_options(command: Any) -> frozenset[str]:
    """Options of a command, or of the commands in a group, that decide its section.

    For commands with a database option, the server is only the base address of a link.
    """
    names = {parameter.name for parameter in command.params}
    own = next(({name} for name in ("database_url", "server") if name in names), set[str]())
    below = getattr(command, "commands", {}).values()
    return frozenset(own.union(*map(_required_options, below)))


class CommandError(Exception):
    """A command failed: has a message, details in `lines`, and advice in `hint`."""

    def __init__(
        self, message: str, code: int = REFUSED, lines: Sequence[str] = (), hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.lines = lines
        self.hint = hint

    def show(self) -> None:
        """Print message, details and advice on stderr."""
        print_note(f"Error: {self}")
        note_each(self.lines)
        if self.hint:
            print_note(self.hint)


def as_command_error(error: CommandError | FactbookError) -> CommandError:
    """Convert a deliberate error to a message and an exit code."""
    if isinstance(error, CommandError):
        return error
    if isinstance(error, InputError | ConfigurationError):
        return CommandError(str(error), USAGE)
    # Notes contain advice.
    return CommandError(str(error), hint=" ".join(getattr(error, "__notes__", ())))


class Commands(Sections):
    """Command group that converts errors to a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the requested command. Raises typer.Exit for deliberate errors."""
        try:
            return super().invoke(ctx)
        except (CommandError, FactbookError) as error:
            told = as_command_error(error)
        told.show()
        raise typer.Exit(told.code)


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
        "FACTBOOK_DATABASE_URL and factbook.toml can set it, too.",
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
    """Connect to the server; converts client errors inside the block to CommandError.

    `where` finds the place in a file for a JSON path of a push.
    """
    # Importing HTTP takes longer than the rest of the command line, and `--help` doesn't need it.
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
    # The server's message repeats its first problem or conflict, so the list replaces the message.
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
    """Ask for confirmation; raises CommandError unless the answer is yes."""
    try:
        if typer.confirm("Write this?", err=True):
            return
    except typer.Abort:
        print_note("")
    raise CommandError("Nothing was written. --yes writes without asking.")


def settings_from(database_url: str | None, **flags: object) -> "Settings":
    """Load the settings in force; flags override file and environment."""
    # Imported here because `--help` has to be fast.
    from factbook.settings.table import load_settings

    return load_settings({"database_url": database_url, **flags})


def service_settings(database_url: str | None, **flags: object) -> "Settings":
    """Load the settings of a service process, which refuses misspelled variables."""
    from factbook.settings.table import refuse_misspelled_variables

    for variable in refuse_misspelled_variables():
        print_note(f"Warning: the variable {variable} is not a setting and is ignored.")
    return settings_from(database_url, **flags)


def run_on_database(
    database_url: str | None,
    work: "Callable[Concatenate[Backend, P], Coroutine[Any, Any, T]]",
    *arguments: P.args,
    **named: P.kwargs,
) -> T:
    """Run a function of `operations` on the configured database.

    Raises CommandError if it is a SQLite file that doesn't exist.
    """
    require_database(settings_from(database_url))
    return run_on_new_database(database_url, work, *arguments, **named)


def run_on_new_database(
    database_url: str | None,
    work: "Callable[Concatenate[Backend, P], Coroutine[Any, Any, T]]",
    *arguments: P.args,
    **named: P.kwargs,
) -> T:
    """Run a function of `operations` on the configured database; creates a missing SQLite file."""
    import asyncio

    # See service.serve.
    from factbook.backend import Backend

    return asyncio.run(work(Backend.of(settings_from(database_url)), *arguments, **named))


def require_database(settings: "Settings") -> None:
    """Raise CommandError if the database is a SQLite file that doesn't exist."""
    from factbook.storage.database_url import is_there, sqlite_path

    if not is_there(settings.database_url):
        path = sqlite_path(settings.database_url).resolve()
        hint = (
            "This command reads the database itself. Run it where the service runs, or name the "
            "database with --database-url or FACTBOOK_DATABASE_URL."
        )
        raise CommandError(f"There is no database {path}.", hint=hint)
