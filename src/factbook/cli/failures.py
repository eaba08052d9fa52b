"""Failure of a command: one message and an exit code."""

from collections.abc import Sequence
from typing import Any

import typer

from factbook.cli.output import note, note_each
from factbook.cli.sections import Sections
from factbook.errors import ConfigurationError, FactbookError, InputError

REFUSED = 1
USAGE = 2
NOT_AUTHORISED = 3
NOT_REACHABLE = 4
# A plan ends with it, so that a script can tell a difference from a mistake.
DIFFERENT = 5

EXIT_CODES = """\b
Exit codes:
  0  done
  1  the server or the tool said no
  2  wrong usage, or input that cannot be read
  3  not authorised: no token, an expired one, or one that lacks a permission
  4  the server cannot be reached
"""
PLAN_CODES = f"{EXIT_CODES}  {DIFFERENT}  there is something to apply\n"


class CommandError(Exception):
    """Failed command: a message, details in `lines`, and advice in `hint`."""

    def __init__(
        self, message: str, code: int = REFUSED, lines: Sequence[str] = (), hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.lines = lines
        self.hint = hint

    def show(self) -> None:
        """Print all of it on stderr."""
        note(f"Error: {self}")
        note_each(self.lines)
        if self.hint:
            note(self.hint)


def failure(error: CommandError | FactbookError) -> CommandError:
    """Message and exit code for an error raised on purpose."""
    if isinstance(error, CommandError):
        return error
    if isinstance(error, InputError | ConfigurationError):
        return CommandError(str(error), USAGE)
    # The notes are what to do about it.
    return CommandError(str(error), hint=" ".join(getattr(error, "__notes__", ())))


class Commands(Sections):
    """Command group that turns every error into a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the requested command. Raises typer.Exit for an error raised on purpose."""
        try:
            return super().invoke(ctx)
        except (CommandError, FactbookError) as error:
            told = failure(error)
        told.show()
        raise typer.Exit(told.code)
