"""Rows of the tool about all entities: the selected entities, each with its JSON text."""

from collections.abc import AsyncIterator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from factbook.catalog.store import by_ref
from factbook.facts import store, unknown
from factbook.facts.datasource import DataSource
from factbook.facts.store import Tracked
from factbook.integrations import catalog
from factbook.tools.entity_facts import end, members
from factbook.tools.tool import Context, encode

Row = tuple[str, str]  # a reference, and the JSON text that follows it in its entry


class Selection(NamedTuple):
    """A selection of entities and facts of a source; None and empty text select all."""

    kind: str | None
    namespace: str | None
    after: str
    limit: int | None
    kept: frozenset[str] | None

    @property
    def most(self) -> int | None:
        """The number of rows to read: one more than wanted, to detect a next page."""
        return None if self.limit is None else self.limit + 1


async def own(
    source: DataSource, selection: Selection, context: Context
) -> AsyncIterator[list[Row]]:
    """The entities with the catalog's own facts."""
    kind, namespace, after, _, kept = selection

    # Thousands of entities share a few of these.
    @lru_cache(maxsize=1024)
    def text(bits: int, time: int) -> str:
        facts = catalog.facts(source.id, bits)
        return end(facts if kept is None else _keep(members(facts), kept), time, {})

    owners = catalog.looks_for_owners(source.id)
    pages = by_ref.complying_pages(
        context.database, kind, namespace, after, selection.most, owners=owners
    )
    async for page in pages:
        yield [(ref, text(bits, time)) for ref, bits, time in page]


async def tracked(
    source: DataSource, selection: Selection, context: Context
) -> AsyncIterator[list[Row]]:
    """The entities with stored facts or reasons."""
    kind, namespace, after, _, kept = selection
    names = [fact.name for fact in source.schema]
    all_names = frozenset(names)

    def text(item: Tracked) -> str:
        found, stored = members(item.facts), unknown.by_place(item.reasons)
        if kept is None and not stored and all_names <= found.keys():
            return end(bytes(item.facts).decode(), item.brought_at, {})
        facts = bytes(item.facts).decode() if kept is None else _keep(found, kept)
        return end(facts, item.brought_at, unknown.shown(names, found, stored, kept))

    pages = store.pages(
        context.database,
        source,
        kind=kind,
        namespace=namespace,
        after=after,
        limit=selection.most,
    )
    async for page in pages:
        yield [(item.ref, text(item)) for item in page]


async def lacking(
    source: DataSource, selection: Selection, context: Context
) -> AsyncIterator[list[Row]]:
    """The entities that the source is about without any value of it."""
    if catalog.answers(source.id):  # it has values of all of them
        return
    kind, namespace, after, _, kept = selection
    names = [fact.name for fact in source.schema]

    # Thousands of entities share a few of these.
    @lru_cache(maxsize=1024)
    def text(reasons: str) -> str:
        return end("{}", None, unknown.shown(names, (), unknown.by_place(reasons), kept))

    pages = unknown.pages(
        context.database,
        source,
        kind=kind,
        namespace=namespace,
        after=after,
        limit=selection.most,
    )
    async for page in pages:
        yield [(ref, text(reasons)) for ref, reasons in page]


def _keep(facts: dict[str, msgspec.Raw], kept: frozenset[str]) -> str:
    return encode({name: value for name, value in facts.items() if name in kept})
