"""Documents that define something: what is refused in any of them, and when two say the same."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from factbook import invisible
from factbook.catalog.validation import deeper_than, too_deep
from factbook.errors import InputError, InvalidItemsError, Problem, problem

T = TypeVar("T")

Document = Mapping[str, Any]

# Members that the service sets; a file that holds one could say what is not true.
_SERVICE_SET: Final = ("version", "draft", "createdAt", "updatedAt")


async def read(
    document: dict[str, Any],
    parse: Callable[[dict[str, Any]], T],
    max_depth: int,
    id_: str | None = None,
) -> T:
    """The definition in a document; raises InvalidItemsError with every mistake and its path.

    With `id_` the document must have this id.
    """
    if deeper_than(document, max_depth):
        raise InputError(f"{too_deep(max_depth)}.")
    problems = service_set(document)
    title = document.get("title")
    if isinstance(title, str) and invisible.has(title):
        problems.append(problem("title", "has an invisible character"))
    if id_ is not None and document.get("id") != id_:
        problems.append(problem("id", f"has to be {id_}, as in the address"))
    try:
        # One with many expressions or conditions takes some time.
        found = await asyncio.to_thread(parse, document)
    except InvalidItemsError as error:
        raise error.after(problems) from None
    if problems:
        raise InvalidItemsError(problems)
    return found


def service_set(document: Document) -> list[Problem]:
    """A problem for each member of the document that only the service may set."""
    return [
        problem(name, "is set by the service; leave it out")
        for name in _SERVICE_SET
        if name in document
    ]


def same(document: Document, other: Document | None) -> bool:
    """Return true if two documents are equal, regardless of the order of object members."""
    return other is not None and ordered(document) == ordered(other)


def json(document: Document) -> str:
    """A document as it is stored."""
    return msgspec.json.encode(document).decode()


ordered: Final = msgspec.json.Encoder(order="deterministic").encode
