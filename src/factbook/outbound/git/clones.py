"""Paths of a repository's files from a clone without contents, which needs no API call."""

import asyncio
import base64
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Final

from factbook.errors import ConfigurationError
from factbook.outbound.calls import path
from factbook.outbound.client import HttpClient
from factbook.outbound.git.commands import Git, Limits
from factbook.outbound.git.program import find
from factbook.outbound.git.replies import TOO_LARGE
from factbook.outbound.outcomes import Answer, Missing, Outcome

LIMITS: Final = Limits()
CHANGED: Final = Missing(Outcome.TRANSIENT, "it changed while it was read, or did not come whole")

_MOVED: Final = Missing(Outcome.NOT_FOUND, "it has moved; the annotation names its old place")
# What a collection asks for has to end within five minutes, and a clone may take two.
_BEGIN_WITHIN: Final = 120.0
_LATER: Final = Missing(Outcome.TRANSIENT, "other clones came first")
_NO_PROGRAM: Final = Missing(Outcome.NOT_APPLICABLE, "this server lacks the program git")
_MOVED_FOR_GOOD: Final = frozenset({301, 308})


@contextmanager
def folder() -> Iterator[str]:
    """An empty folder, deleted at the end of the block."""
    with TemporaryDirectory(prefix="factbook-git-", ignore_cleanup_errors=True) as place:
        yield os.path.realpath(place)


def proof(user: str, password: str) -> dict[str, str]:
    """The headers by which Git hosts accept a token."""
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"authorization": f"Basic {pair}"}


class Clones:
    """Clones that one collection makes at one host, one after another."""

    def __init__(self, host: HttpClient) -> None:
        self.limits = LIMITS
        self._host = host
        self._turn = asyncio.Lock()
        self._begun = time.monotonic()

    async def paths(self, name: str) -> list[str] | Missing:
        """The paths of all files at the HEAD of a repository, given by its path at the host.

        Not applicable if Git is not installed.
        """
        async with self._turn:
            if time.monotonic() - self._begun > _BEGIN_WITHIN:
                return _LATER
            try:
                program = await asyncio.to_thread(find)
            except ConfigurationError:
                return _NO_PROGRAM
            url = f"{self._host.base_url}{path(*name.split('/'))}.git"
            with folder() as place:
                return await listed(Git(program, self.limits, self._host, place), url, "HEAD")


async def listed(git: Git, url: str, commit: str) -> list[str] | Missing:
    """The paths of all files of a commit, unordered, from a new clone."""
    answer = await git.clone(url)
    if not answer.ok:
        return why(answer, git.limits)
    tree = await git.tree(commit)
    if tree.status == TOO_LARGE:
        return too_large(git.limits)
    if tree.status != 200:
        return CHANGED
    entries = (entry.partition(b"\t") for entry in tree.body.split(b"\0"))
    return [name.decode("utf-8", "replace") for kind, _, name in entries if b" blob " in kind]


def why(answer: Answer, limits: Limits) -> Missing:
    """The reason that there are no paths."""
    if answer.status == TOO_LARGE:
        return too_large(limits)
    return _MOVED if answer.status in _MOVED_FOR_GOOD else answer.missing


def too_large(limits: Limits) -> Missing:
    """The reason for a repository that exceeds the limits."""
    return Missing(Outcome.TOO_LARGE, f"the repository is larger than {limits}")
