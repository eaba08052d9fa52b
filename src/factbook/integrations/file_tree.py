"""Paths of all files of a repository at one commit, kept until its HEAD moves.

A tree that takes too many calls is read from a clone without file contents.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from factbook.integrations.integration import store_entry, stored_entry
from factbook.outbound.cache import Memory, exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.git import Clones, report_too_large
from factbook.outbound.outcomes import Missing, Outcome

Paths = list[str]


class _StoredPaths(msgspec.Struct, array_like=True):
    oid: str
    paths: Paths


async def kept(memory: Memory, repository: str | int, oid: str) -> Paths | None:
    """The paths at this commit, or None if none are kept or those of another commit.

    `repository` is the host's permanent name for it, such as its id.
    """
    stored = await stored_entry(memory, _key(repository), _StoredPaths)
    return stored.paths if stored and stored.oid == oid else None


async def keep(memory: Memory, repository: str | int, oid: str, paths: Paths) -> None:
    """Keep the paths at this commit in place of those at another one."""
    await store_entry(memory, _key(repository), _StoredPaths(oid, paths))


class RepositoryTree(NamedTuple):
    """Tree at the commit `oid`; `repository` is its permanent name, `name` its path for a clone.

    `call` reads it by API calls, or returns the reason if that takes more than `most_calls`.
    """

    repository: str | int
    oid: str
    name: str
    call: Callable[[], Awaitable[Paths | Missing]]
    most_calls: int


async def read(memory: Memory, tree: RepositoryTree, copies: Clones, now: int) -> Paths | Missing:
    """The paths of all files, unordered: those kept of this commit, or read and kept."""
    found = await kept(memory, tree.repository, tree.oid)
    if found is not None:
        return found
    read = await _read(memory, tree, copies, now)
    if not isinstance(read, Missing):
        await keep(memory, tree.repository, tree.oid, read)
    return read


async def _read(memory: Memory, tree: RepositoryTree, copies: Clones, now: int) -> Paths | Missing:
    """The paths, by the method that worked for an earlier commit if that is known."""
    by_calls, by_clone = f"tree:{tree.repository}", f"clone:{tree.repository}"
    if not await exceeds_noted_limit(memory, by_calls, tree.most_calls, now):
        found = await tree.call()
        if not isinstance(found, Missing) or found.outcome is not Outcome.TOO_LARGE:
            return found
        await note_exceeded_limit(memory, by_calls, tree.most_calls, now)
    if await exceeds_noted_limit(memory, by_clone, copies.limits, now):
        return report_too_large(copies.limits)
    found = await copies.paths(tree.name)
    if not isinstance(found, Missing) or found.retried:
        return found
    if found.outcome is Outcome.TOO_LARGE:
        await note_exceeded_limit(memory, by_clone, copies.limits, now)
        return found
    detail = f"the tree takes too many calls, and a clone failed: {found.detail}"
    return Missing(Outcome.TOO_LARGE, detail)


def _key(repository: str | int) -> str:
    return f"tree:{repository}"
