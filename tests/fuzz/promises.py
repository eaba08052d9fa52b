"""What every parser promises, whatever it is given, and how that is checked."""

import time
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import msgspec

from factbook.errors import ConfigurationError, FactbookError, ToolError

P = ParamSpec("P")
T = TypeVar("T")

# Processor time, beside what a target allows. What is quadratic goes beyond it, as inputs of some
# ten kilobytes are among those made; what is imported at the first call, or observed, stays below.
_SECONDS_PER_KILOBYTE: Final = 0.02


class TooSlowError(AssertionError):
    """A parser took longer than an input of this length may take, and did so again."""


def run(check: Callable[[bytes], None], data: bytes, seconds: float = 1.0) -> None:
    """Check one input. Raises TooSlowError, and whatever else stands for a broken promise."""
    allowed = seconds + _SECONDS_PER_KILOBYTE * len(data) / 1024
    if _seconds(check, data) > allowed and (spent := _seconds(check, data)) > allowed:
        raise TooSlowError(f"{spent:.2f} s for {len(data)} bytes")


def tried(call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T | None:
    """What the call returns; None when it refuses, which it has to do in one of the known ways."""
    try:
        return call(*args, **named)
    except FactbookError as error:
        check_refusal(error)
        return None


def check_refusal(error: FactbookError) -> None:
    """A refusal blames the input, says why, and can be sent as JSON."""
    is_known = isinstance(error, ToolError | ConfigurationError) or 400 <= error.status < 500
    assert is_known, f"{type(error).__name__} blames the service: {error}"
    assert error.message.strip()
    assert msgspec.json.encode({"message": error.message, **error.details})


def check_told(error: Exception, *untold: str) -> None:
    """An error that is no refusal of a service says something, and none of these texts."""
    assert str(error).strip() or type(error).__doc__
    assert not any(one in str(error) for one in untold)


def text(data: bytes) -> str:
    """The input as what arrives as text, which is always proper Unicode."""
    return data.decode("utf-8", "replace")


def lines(data: bytes, count: int) -> list[str]:
    """The input as so many texts: its lines, the last with all that is left."""
    found = text(data).split("\n", count - 1)
    return found + [""] * (count - len(found))


def json(data: bytes) -> object:
    """The input as JSON; None when it is not, or is nested deeper than a document may be."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _seconds(check: Callable[[bytes], None], data: bytes) -> float:
    started = time.thread_time()
    check(data)
    return time.thread_time() - started
