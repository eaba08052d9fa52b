"""What a look at something came to."""

from typing import Literal, NamedTuple

State = Literal["ok", "warning", "problem"]


class Finding(NamedTuple):
    """How one thing is; `advice` is what to do about it, empty where nothing is to be done."""

    topic: str
    state: State
    what: str
    advice: str = ""


def ok(topic: str, what: str) -> Finding:
    """Nothing to do."""
    return Finding(topic, "ok", what)


def warning(topic: str, what: str, advice: str) -> Finding:
    """It works, and may not go on to, or not be as safe as it could be."""
    return Finding(topic, "warning", what, advice)


def problem(topic: str, what: str, advice: str) -> Finding:
    """Something does not work, or facts are unknown because of it."""
    return Finding(topic, "problem", what, advice)
