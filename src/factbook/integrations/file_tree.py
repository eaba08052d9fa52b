"""Paths of all files of a repository at one commit, kept until its HEAD moves.

A tree that takes too many calls is read from a clone without file contents.
"""

import zlib

import msgspec

from factbook.outbound import Memory

Paths = list[str]


class _StoredPaths(msgspec.Struct, array_like=True):
    oid: str
    paths: Paths


async def kept(memory: Memory, repository: str | int, oid: str) -> Paths | None:
    """The paths at this commit, or None if none are kept or those of another commit.

    `repository` is the host's permanent name for it, such as its id.
    """
    stored = _decode(await memory.get(_key(repository)))
    return stored.paths if stored and stored.oid == oid else None


async def keep(memory: Memory, repository: str | int, oid: str, paths: Paths) -> None:
    """Keep the paths at this commit in place of those at another one."""
    text = msgspec.json.encode(_StoredPaths(oid, paths))
    await memory.put(_key(repository), zlib.compress(text, level=1))


def _key(repository: str | int) -> str:
    return f"tree:{repository}"


def _decode(stored: bytes | None) -> _StoredPaths | None:
    """The stored entry; None if this version cannot decode it."""
    if stored is None:
        return None
    try:
        return msgspec.json.decode(zlib.decompress(stored), type=_StoredPaths)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None
