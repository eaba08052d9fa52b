"""Answers of the fake Gitea: a status, and a body in Gitea's form."""

from typing import Any, NamedTuple


class Said(NamedTuple):
    """A status and a JSON body, or the bytes of a file; `total` is that of a list."""

    status: int
    body: Any
    total: int | None = None


def refusal(status: int, message: str) -> Said:
    """An error in Gitea's form."""
    return Said(status, {"message": message, "url": "https://git.example.com/api/swagger"})


NOT_FOUND = refusal(404, "The target couldn't be found.")
