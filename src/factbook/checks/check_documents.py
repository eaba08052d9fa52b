"""Documents of checks as interfaces take them: read whole, against all that they refer to."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from factbook import invisible
from factbook.catalog.validation import deeper_than, too_deep
from factbook.checks import check_store, definition, validation
from factbook.checks.definition import Check
from factbook.checks.fact_reference import CHECKS
from factbook.checks.validation import CheckContext
from factbook.datasources import definitions
from factbook.datasources.registry import Registry
from factbook.errors import FactbookError, InputError, InvalidItemsError
from factbook.storage import Database

Document = dict[str, Any]

_UNTOLD: Final = "does not fit the data sources and checks that there are"
_READS_CHECKS: Final = f'"{CHECKS}"'.encode()


async def checked(
    document: Document,
    database: Database,
    registry: Registry,
    max_depth: int,
    check_id: str | None = None,
) -> Check:
    """The check in a document; raises InvalidItemsError with every mistake and its path.

    With `check_id` the document must be of that check.
    """
    if deeper_than(document, max_depth):
        raise InputError(f"{too_deep(max_depth)}.")
    problems = definitions.service_set(document) + _unseen(document)
    if check_id is not None and document.get("id") != check_id:
        problems.append({"path": "id", "message": f"has to be {check_id}, as in the address"})
    context = await _context(document, database, registry)
    try:
        # One with many conditions takes some time.
        found, mistakes = await asyncio.to_thread(_read, document, context)
    except InvalidItemsError as error:
        raise InvalidItemsError([*problems, *error.details["problems"]]) from None
    if problems or mistakes:
        # What is wrong with a reference tells what is stored.
        untold = [{"path": one["path"], "message": _UNTOLD} for one in mistakes]
        told = InvalidItemsError([*problems, *mistakes])
        raise told.unless_read(InvalidItemsError([*problems, *untold]))
    return found


def _read(document: Document, context: CheckContext) -> tuple[Check, list[dict[str, str]]]:
    found = definition.parse(document)
    return found, validation.problems(found, context)


async def _context(document: Document, database: Database, registry: Registry) -> CheckContext:
    """Sources that the document may refer to; other checks only where it can name one."""
    known = await registry.latest()
    if _READS_CHECKS not in msgspec.json.encode(document):
        return CheckContext(known.sources, {})
    stored = await check_store.everything(database)
    documents = [one.draft or one.pending or one.published or {} for one in stored]
    return CheckContext(known.sources, await asyncio.to_thread(_parsed, documents))


def _parsed(documents: list[Document]) -> Mapping[str, Check]:
    found: dict[str, Check] = {}
    for document in documents:
        try:
            check = definition.parse(document)
        except FactbookError:
            continue  # an older release took it; nothing can be said of what it reads
        found[check.id] = check
    return found


def _unseen(document: Document) -> list[dict[str, str]]:
    title = document.get("title")
    if isinstance(title, str) and invisible.has(title):
        return [{"path": "title", "message": "has an invisible character"}]
    return []
