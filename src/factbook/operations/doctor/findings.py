"""Findings of the checks."""

from typing import Literal, NamedTuple

State = Literal["ok", "warning", "problem"]


class Finding(NamedTuple):
    """State of one item; `advice` says what to do, empty if nothing."""

    topic: str
    state: State
    what: str
    advice: str = ""


def ok(topic: str, what: str) -> Finding:
    """Nothing to do."""
    return Finding(topic, "ok", what)


def warning(topic: str, what: str, advice: str) -> Finding:
    """It works, but may stop working, or is less safe than it could be."""
    return Finding(topic, "warning", what, advice)


def problem(topic: str, what: str, advice: str) -> Finding:
    """Something does not work, or facts are unknown because of it."""
    return Finding(topic, "problem", what, advice)
