"""Documents of checks and scorecards as interfaces take them, against all that they refer to."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from factbook.checks.definitions import scorecard, validation
from factbook.checks.definitions.scorecard import Scorecard
from factbook.checks.definitions.validation import CheckContext
from factbook.checks.rules.check_definition import Check, parse_check, parse_stored_check
from factbook.checks.rules.language import CHECKS
from factbook.checks.versions.check_store import check_store
from factbook.datasources.registry import Registry
from factbook.definitions import documents
from factbook.errors import FactbookError, InvalidItemsError
from factbook.storage import Database

Document = dict[str, Any]

_READS_CHECKS: Final = f'"{CHECKS}"'.encode()


async def read_check(
    document: Document,
    database: Database,
    registry: Registry,
    max_depth: int,
    check_id: str | None = None,
    authorize: Callable[[Check], None] = lambda _: None,
) -> Check:
    """The check in a document; raises the errors of `documents.read`.

    `authorize` is asked before anything is told about what the check refers to.
    """
    context = await _context(document, database, registry)
    parse = partial(_parse, context=context, authorize=authorize)
    return await documents.read(document, parse, max_depth, check_id)


async def read_scorecard(
    document: Document, database: Database, max_depth: int, scorecard_id: str | None = None
) -> Scorecard:
    """The scorecard in a document; raises the errors of `documents.read`."""
    known = {one.id for one in await check_store.everything(database)}
    parse = partial(scorecard.parse, checks=known)
    return await documents.read(document, parse, max_depth, scorecard_id)


def _parse(document: Document, context: CheckContext, authorize: Callable[[Check], None]) -> Check:
    found = parse_check(document)
    authorize(found)
    if problems := validation.problems(found, context):
        raise InvalidItemsError(problems)
    return found


async def _context(document: Document, database: Database, registry: Registry) -> CheckContext:
    """Sources that the document may refer to; other checks only where it can name one."""
    known = await registry.latest()
    if _READS_CHECKS not in msgspec.json.encode(document):
        return CheckContext(known.sources, {})
    stored = await check_store.everything(database)
    written = [one.written for one in stored]
    return CheckContext(known.sources, await asyncio.to_thread(_parsed, written))


def _parsed(written: list[Document]) -> Mapping[str, Check]:
    found: dict[str, Check] = {}
    for document in written:
        try:
            check = parse_stored_check(document)
        except FactbookError:
            continue  # an older release took it; nothing can be said of what it reads
        found[check.id] = check
    return found
