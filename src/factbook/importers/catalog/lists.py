"""Listing of another catalog's entities: read to its end, or told to be incomplete.

Source: the catalog API's `GET /entities/by-query`. A cursor contains the whole query, and the order
by it never skips an entity that stays.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from factbook.catalog.ref import DEFAULT_NAMESPACE, EntityRef
from factbook.outbound import HttpClient
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Missing, Outcome, too_many

_PATH: Final = "/api/catalog/entities/by-query"
# All but what a catalog computes: relations and status.
_FIELDS: Final = "apiVersion,kind,metadata,spec"
# A page of large entities may be too much to answer, or to take.
_SIZES: Final = (500, 100, 20)
_MOST_PAGES: Final = 4_000
# Everything is in memory until it is written.
MOST_ENTITIES: Final = 500_000
MOST_BYTES: Final = 256 * 1024 * 1024
_CHANGED: Final = Missing(Outcome.INCOMPLETE, "the catalog changed while it was read")
_TWICE: Final = Missing(Outcome.INCOMPLETE, "an entity was listed twice")

Entity = dict[str, Any]


class _PagePosition(msgspec.Struct, rename="camel"):
    next_cursor: str | None = None


class _EntityPage(msgspec.Struct, rename="camel"):
    items: list[Entity]
    total_items: int
    page_info: _PagePosition


@dataclass
class EntityListing:
    """The entities by reference in the order of the list, and the reason if it is not complete."""

    entities: dict[str, Entity] = field(default_factory=dict)
    missing: Missing | None = None
    total: int | None = None
    size: int = 0

    def take(self, page: _EntityPage, size: int) -> None:
        """Add the entities of a page of so many bytes."""
        self.size += size
        if self.total not in (None, page.total_items):
            self.missing = self.missing or _CHANGED
        self.total = page.total_items
        for entity in page.items:
            ref = _ref(entity)
            if ref is None:
                self.missing = self.missing or UNUSABLE
            elif ref in self.entities:
                self.missing = self.missing or _TWICE
            else:
                self.entities[ref] = entity

    @property
    def excess(self) -> Missing | None:
        """The reason to stop, if the list is larger than fits here."""
        if len(self.entities) > MOST_ENTITIES:
            return too_many(MOST_ENTITIES, "entities")
        return too_many(MOST_BYTES, "bytes of entities") if self.size > MOST_BYTES else None

    def ended(self) -> "EntityListing":
        """The listing after its last page."""
        count = len(self.entities)
        if count != self.total and self.missing is None:
            text = f"{count:,} of {self.total:,} were listed"
            self.missing = Missing(Outcome.INCOMPLETE, text)
        return self


async def listing(
    client: HttpClient, filters: Sequence[str], show: Callable[[str], None]
) -> EntityListing:
    """Every entity that passes one of the filters.

    A page without an answer is asked for in smaller pieces. A page that fails, an entity that comes
    twice, and another number of entities than the catalog counts make the listing incomplete.
    """
    found = EntityListing()
    sizes, cursor = list(_SIZES), ""
    for _ in range(_MOST_PAGES):
        answer = await client.get(_target(filters, cursor, sizes[0]), follow=True)
        if answer.outcome is Outcome.TRANSIENT and answer.status == 0 and len(sizes) > 1:
            del sizes[0]
            continue
        page = answer.read_as(_EntityPage)
        if isinstance(page, Missing):
            found.missing = page
            return found
        before = len(found.entities)
        found.take(page, len(answer.body))
        show(f"Read {len(found.entities):,} of {page.total_items:,} entities")
        cursor = page.page_info.next_cursor or ""
        if not cursor:
            return found.ended()
        if excess := found.excess:
            found.missing = excess
            return found
        if len(found.entities) == before:
            found.missing = REPEATED
            return found
    found.missing = too_many(_MOST_PAGES, "pages")
    return found


def _target(filters: Sequence[str], cursor: str, size: int) -> str:
    asked = [("cursor", cursor)] if cursor else [("filter", text) for text in filters]
    query = [*asked, ("limit", str(size)), ("fields", _FIELDS)]
    return f"{_PATH}?{urlencode(query)}"


def _ref(entity: Entity) -> str | None:
    """The reference of an entity; None for one of an unknown form."""
    kind, metadata = entity.get("kind"), entity.get("metadata")
    if not isinstance(kind, str) or not isinstance(metadata, dict):
        return None
    name, namespace = metadata.get("name"), metadata.get("namespace") or DEFAULT_NAMESPACE
    if not (isinstance(name, str) and isinstance(namespace, str) and kind and name):
        return None
    return str(EntityRef.of(kind, namespace, name))
