"""Published checks: those that cannot be evaluated, and circles of those that read each other."""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

from factbook.checks.definitions import dependencies
from factbook.checks.definitions.check import parse_check
from factbook.checks.versions.check_store import check_store
from factbook.errors import FactbookError
from factbook.operations.doctor.findings import Finding, ok, problem
from factbook.storage import Database

TOPIC: Final = "checks"


async def checks(database: Database) -> AsyncIterator[Finding]:
    """Findings on checks whose results are not to be relied on."""
    stored = await check_store.everything(database)
    published = {one.id: one.published for one in stored if one.published is not None}
    found = [*_unusable(published), *_circles(published)]
    for finding in found:
        yield finding
    if published and not found:
        yield ok(TOPIC, f"All {len(published)} published checks can be evaluated.")


def _unusable(published: Mapping[str, dict[str, Any]]) -> Iterator[Finding]:
    for id_, document in published.items():
        try:
            parse_check(document)
        except FactbookError as error:
            what = f"This release cannot evaluate {id_}: {error.message}"
            yield problem(TOPIC, what, "Publish it anew, or start the release that it is of.")


def _circles(published: Mapping[str, dict[str, Any]]) -> Iterator[Finding]:
    """A problem for each circle, which earlier releases let through."""
    reads = {id_: dependencies.referenced(document) for id_, document in published.items()}
    told = set[frozenset[str]]()
    for id_, others in reads.items():
        for other in others:
            circle = dependencies.way_back(id_, other, lambda one: reads.get(one, ()))
            if not circle or frozenset(circle) in told:
                continue
            told.add(frozenset(circle))
            what = f"A check reads itself: {' → '.join(circle)}."
            advice = "The results mean nothing: publish one of them that does not read the next."
            yield problem(TOPIC, what, advice)
