"""Forms of the push interface: the guards of a push, and sets of entities in the answers."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator

import msgspec

from factbook.api.openapi.parameters import IF_MATCH, MAX_REMOVALS, ON_CONFLICT
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import StoredItem
from factbook.clock import iso
from factbook.http.requests import Request

_PIECE = 256 * 1024

_string = msgspec.json.Encoder().encode


def guards_of(request: Request) -> Guards:
    """The guards in the query and the If-Match header; raises InputError for invalid ones."""
    take = ON_CONFLICT.of(request) == "take"
    return Guards(IF_MATCH.of(request), _max_removals(MAX_REMOVALS.of(request)), take)


def _max_removals(text: str | None) -> Callable[[int], int] | None:
    """From a set's item count to the most removals."""
    if text is None:
        return None
    if not text.endswith("%"):
        return lambda count: int(text)
    return lambda count: int(count * float(text[:-1]) / 100)


def render(item: StoredItem) -> bytes:
    """A set item as the push interface shows it; `rawData` repeats `entity`."""
    set_name = _string(item.set).decode()
    return (
        f'{{"id":"{item.uid}","entity":{item.document},"entityRef":{_string(item.ref).decode()}'
        f',"rawData":{item.document},"set":{set_name},"updatedBy":{_string(item.updated_by).decode()}'
        f',"source":"api-entity","updatedAt":"{iso(item.updated_at)}"}}'
    ).encode()


def pieces(head: dict[str, object], items: Iterable[bytes]) -> Iterator[bytes]:
    """`head` with the items as its last member, in pieces of some size."""
    buffer = bytearray(msgspec.json.encode(head)[:-1])
    buffer += b',"items":[' if head else b'"items":['
    comma = b""
    for item in items:
        buffer += comma + item
        comma = b","
        if len(buffer) >= _PIECE:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer + b"]}")


async def streamed(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The same pieces, sent one after another."""
    for piece in parts:
        yield piece


async def whole(
    head: dict[str, object], portions: AsyncIterator[list[StoredItem]]
) -> AsyncIterator[bytes]:
    """The same as `pieces`, for items that come in portions from the database."""
    yield msgspec.json.encode(head)[:-1] + (b',"items":[' if head else b'"items":[')
    comma = b""
    async for portion in portions:
        yield comma + b",".join(map(render, portion))
        comma = b","
    yield b"]}"
