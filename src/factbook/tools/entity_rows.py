"""Rows of the tool about all entities: the selected entities, each with its JSON text."""

from collections.abc import AsyncGenerator
from functools import lru_cache
from typing import NamedTuple

import msgspec

from factbook.catalog.store import by_ref
from factbook.catalog.store.conditions import EntityRange
from factbook.facts import store, unknown
from factbook.facts.datasource import DataSource
from factbook.facts.store import Tracked
from factbook.integrations import catalog
from factbook.tools.entity_facts import end, members, stale_members
from factbook.tools.tool import Context, encode

Row = tuple[str, str]  # a reference, and the JSON text that follows it in its entry


class Selection(NamedTuple):
    """A selection of entities and facts of a source; None keeps all facts."""

    entities: EntityRange
    kept: frozenset[str] | None

    @property
    def read(self) -> EntityRange:
        """The entities to read: one more than wanted, to detect a next page."""
        limit = self.entities.limit
        return self.entities._replace(limit=None if limit is None else limit + 1)


async def own(
    source: DataSource, selection: Selection, context: Context
) -> AsyncGenerator[list[Row], None]:
    """The entities with the catalog's own facts."""
    kept = selection.kept

    # Thousands of entities share a few of these.
    @lru_cache(maxsize=1024)
    def text(bits: int, time: int) -> str:
        facts = catalog.facts(source.id, bits)
        return end(facts if kept is None else _keep(members(facts), kept), time, {})

    owners = catalog.looks_for_owners(source.id)
    pages = by_ref.complying_pages(context.database, selection.read, owners=owners)
    async for page in pages:
        yield [(ref, text(bits, time)) for ref, bits, time in page]


async def tracked(
    source: DataSource, selection: Selection, context: Context
) -> AsyncGenerator[list[Row], None]:
    """The entities with stored facts or reasons."""
    kept = selection.kept
    names = [fact.name for fact in source.schema]
    all_names = frozenset(names)

    def text(item: Tracked) -> str:
        found, stored = members(item.facts), unknown.by_place(item.reasons)
        if kept is None and not stored and all_names <= found.keys() and not item.stale:
            return end(bytes(item.facts).decode(), item.brought_at, {})
        facts = bytes(item.facts).decode() if kept is None else _keep(found, kept)
        shown = [name for name in found if kept is None or name in kept]
        why = unknown.shown(names, found, stored, kept)
        return end(facts, item.brought_at, why, stale_members(shown, item.stale))

    async for page in store.pages(context.database, source, selection.read):
        yield [(item.ref, text(item)) for item in page]


async def lacking(
    source: DataSource, selection: Selection, context: Context
) -> AsyncGenerator[list[Row], None]:
    """The entities that the source is about without any value of it."""
    if catalog.answers(source.id):  # it has values of all of them
        return
    kept = selection.kept
    names = [fact.name for fact in source.schema]

    # Thousands of entities share a few of these.
    @lru_cache(maxsize=1024)
    def text(reasons: str) -> str:
        return end("{}", None, unknown.shown(names, (), unknown.by_place(reasons), kept))

    async for page in unknown.pages(context.database, source, selection.read):
        yield [(ref, text(reasons)) for ref, reasons in page]


def _keep(facts: dict[str, msgspec.Raw], kept: frozenset[str]) -> str:
    return encode({name: value for name, value in facts.items() if name in kept})
