"""Common parts of definition documents: validation, equality and owners."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from factbook import invisible
from factbook.catalog import ref
from factbook.catalog.validation import deeper_than, too_deep
from factbook.errors import InputError, InvalidItemsError, Problem, problem

T = TypeVar("T")
Document = Mapping[str, Any]
# Members that only the server sets; their values in a file could be wrong.
_SERVICE_MEMBERS: Final = ("version", "draft", "createdAt", "updatedAt")


async def read_definition(
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
    problems = service_set_problems(document)
    title = document.get("title")
    if isinstance(title, str) and invisible.has(title):
        problems.append(problem("title", "has an invisible character"))
    if id_ is not None and document.get("id") != id_:
        problems.append(problem("id", f"has to be {id_}, as in the address"))
    try:
        # Many expressions or conditions take time to parse.
        found = await asyncio.to_thread(parse, document)
    except InvalidItemsError as error:
        raise error.after(problems) from None
    if problems:
        raise InvalidItemsError(problems)
    return found


def service_set_problems(document: Document) -> list[Problem]:
    """A problem for each member of the document that only the service may set."""
    return [
        problem(name, "is set by the service; leave it out")
        for name in _SERVICE_MEMBERS
        if name in document
    ]


def is_same_document(document: Document, other: Document | None) -> bool:
    """Return true if two documents are equal, regardless of the order of object members."""
    return other is not None and encode_ordered(document) == encode_ordered(other)


def stored_document(document: Document) -> str:
    """A document as it is stored."""
    return msgspec.json.encode(document).decode()


def document_owner(document: Document) -> str:
    """The canonical reference of the owner; "" without one."""
    return _canonical_reference(document.get("owner"))


def version_owners(*documents: Document | None) -> frozenset[str]:
    """The owners of the existing versions of a definition; "" for a version without one."""
    return frozenset(document_owner(one) for one in documents if one is not None)


def rename_in_document(document: Document, names: Mapping[str, str]) -> dict[str, Any]:
    """The document with its owner and approvers renamed; `names` maps canonical references."""
    after = dict(document)
    if name := names.get(document_owner(document)):
        after["owner"] = name
    rules = document.get("exemptions")
    if isinstance(rules, dict) and isinstance(approvers := rules.get("approvers"), list):
        found = dict.fromkeys(names.get(_canonical_reference(one), one) for one in approvers)
        after["exemptions"] = {**rules, "approvers": [*found]}
    return after


def _canonical_reference(value: object) -> str:
    try:
        return ref.canonicalize_ref(value, kind="group") if isinstance(value, str) else ""
    except InputError:
        return ""


encode_ordered: Final = msgspec.json.Encoder(order="deterministic").encode
