"""One file of a repository's HEAD: a clone without contents, and then its contents alone."""

import zlib
from typing import Final

import msgspec

from factbook.integrations.git.client import Reading, folder
from factbook.integrations.git.options import Options
from factbook.outbound import Answer, HttpClient, Memory
from factbook.outbound.git.commands import Git
from factbook.outbound.outcomes import Missing, Outcome

# Larger ones are asked for again.
_LARGEST_KEPT: Final = 1024 * 1024
_DAYS_KEPT: Final = 30


class _Kept(msgspec.Struct, array_like=True):
    """What a file held at a commit, compressed."""

    commit: str = ""
    body: bytes = b""


async def read(
    program: str, options: Options, target: str, file: str, client: HttpClient, memory: Memory
) -> Answer:
    """The file with this path, its bytes as the body; not fetched again while HEAD is the same."""
    with folder() as place:
        reading = Reading(Git(program, options, client, place), options, client, memory, target)
        found = await reading.commit()
        if isinstance(found, Missing):
            return _nothing(found)
        key = f"file:{target}:{file}"
        kept = _decoded(await memory.get(key))
        if kept.commit == found.id:
            return Answer(Outcome.OK, 200, body=zlib.decompress(kept.body), remembered=True)
        body = await reading.contents(found, file)
        if isinstance(body, Missing):
            return _nothing(body)
        if len(body) <= _LARGEST_KEPT:
            stored = msgspec.msgpack.encode(_Kept(found.id, zlib.compress(body)))
            await memory.put(key, stored, days=_DAYS_KEPT)
        return Answer(Outcome.OK, 200, body=body)


def _nothing(missing: Missing) -> Answer:
    return Answer(missing.outcome, detail=missing.detail)


def _decoded(stored: bytes | None) -> _Kept:
    try:
        return msgspec.msgpack.decode(stored or b"", type=_Kept)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Kept()
