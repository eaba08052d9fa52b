"""What the commands print: answers on stdout, everything that is said beside them on stderr."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

# Wide enough for any row, so that what reads a table from a pipe never meets a wrapped line.
_PIPE_WIDTH = 10_000
_LINES_SHOWN = 100


def printable(text: str) -> str:
    """The text with control characters escaped: what a server sends cannot drive the terminal."""
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )


def note(message: str) -> None:
    """Print a message on stderr."""
    print(printable(message), file=sys.stderr)


def note_each(lines: Sequence[str]) -> None:
    """Print each line on stderr, indented, and how many there are beyond the first hundred."""
    for line in lines[:_LINES_SHOWN]:
        note(f"  {line}")
    if len(lines) > _LINES_SHOWN:
        note(f"  and {len(lines) - _LINES_SHOWN} more")


def say(message: str) -> None:
    """Print a line of the answer on stdout."""
    print(printable(message))


def say_coloured(message: str, colour: str | None) -> None:
    """Print a line of the answer on stdout; on a terminal in a colour, if NO_COLOR allows it."""
    plain = colour is None or os.environ.get("NO_COLOR")
    typer.secho(printable(message), fg=None if plain else colour)


def print_json(value: Any, *, indent: int = 2) -> None:
    """Print a value as JSON; on one line when `indent` is 0."""
    import msgspec

    encoded = msgspec.json.encode(value)
    print((msgspec.json.format(encoded, indent=indent) if indent else encoded).decode())


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows as a table; None is an empty cell."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in columns:
        # Folded rather than cut: what is copied from a table has to be whole.
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else printable(str(cell))) for cell in row))
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    Console(file=sys.stdout, width=width, markup=False, emoji=False, highlight=False).print(table)


@contextmanager
def progress(description: str) -> Iterator[Callable[[str], None]]:
    """Shows on stderr, when that is a terminal, what is being done; gives what changes the text."""
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
    """Shows on stderr, when that is a terminal, how much is done; gives what tells it.

    It is told the number of what is done, and of all.
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
    """Ends a block that prints when the command is stopped, or when whoever reads has enough."""
    try:
        yield
    except KeyboardInterrupt:
        return
    except BrokenPipeError:
        # What Python flushes at its end has to go somewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
