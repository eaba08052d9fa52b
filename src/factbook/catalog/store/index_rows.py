"""Rows derived from an entity's document: search rows, relations and compliance."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import NamedTuple, Self, TypeVar

import msgspec

from factbook.catalog import compliance, kinds, search
from factbook.catalog.piecewise import slices, weighed
from factbook.catalog.store.documents import DOCUMENT
from factbook.storage import Database, Transaction, counters
from factbook.storage.database import ReadSnapshot

T = TypeVar("T")

# Entities whose derived rows are in memory at the same time: so many, and so long together. A
# character of a document gives rise to some 50 bytes of rows.
_PORTION = 1_000
_LONGEST = 4_000_000
_KEY_COLUMNS = ("key_id", "value", "original", "entity_id")

EntitySearchRow = tuple[str, str, str, int]  # key, value, value as written, entity

_decode = msgspec.json.Decoder().decode


class Derived(NamedTuple):
    """Rows stored alongside a document; `ref` is (kind, namespace, name)."""

    ref: tuple[str, str, str]
    search: set[search.SearchRow]
    edges: set[kinds.Relation]
    compliance: int
    spec: kinds.Spec

    @classmethod
    def of(cls, ref: str, document: str, *, without_spec: bool = False) -> Self:
        """Derive the rows of one document; the compliance bits of relations are computed elsewhere.

        `without_spec`: only the rows derived from the other parts of the document.
        """
        kind, _, rest = ref.partition(":")
        namespace, _, name = rest.partition("/")
        entity = _decode(document)
        spec = entity.get("spec", {})
        bits = compliance.of_document(entity["metadata"], spec)
        if without_spec:
            entity["spec"] = spec = {}
        edges, _ = kinds.derive_relations(kind, namespace, spec)
        return cls((kind, namespace, name), search.flatten(entity), edges, bits, spec)

    @property
    def former(self) -> set[kinds.Relation]:
        """Relations that an earlier release may have stored for the entity."""
        kind, namespace, _ = self.ref
        return kinds.former_relations(kind, namespace, self.spec)


class DerivedDiff(NamedTuple):
    """Rows to insert and delete when one document replaces another."""

    search_come: list[search.SearchRow]
    search_gone: list[search.SearchRow]
    edges_come: list[kinds.Relation]
    edges_gone: list[kinds.Relation]
    compliance: int

    @classmethod
    def of(cls, ref: str, before: str, after: str) -> Self:
        """The difference between two documents of one entity."""
        same = _spec(before) == _spec(after)
        old, new = (Derived.of(ref, text, without_spec=same) for text in (before, after))
        return cls(
            _without(new.search, old.search),
            _without(old.search, new.search),
            _without(new.edges, old.edges),
            [*_without(old.edges, new.edges), *old.former],
            new.compliance,
        )


class _Parts(msgspec.Struct):
    spec: msgspec.Raw = msgspec.Raw(b"")


_parts = msgspec.json.Decoder(_Parts).decode


def _spec(document: str) -> bytes:
    # Decoded they would compare true and 1 as the same, which the search index tells apart.
    return bytes(_parts(document).spec)


def _without(rows: set[T], others: set[T]) -> list[T]:
    # A difference of sets is one call, during which no other thread runs.
    return [row for row in rows if row not in others]


class Interned:
    """Search rows with keys replaced by integers, which makes the index a third smaller.

    Keys are stored aside, so that no write waits for another one with the same new key, unless the
    transaction creates the table.
    """

    def __init__(self, transaction: Transaction, *, creates: bool = False) -> None:
        self._transaction = transaction
        self._aside = (lambda: nullcontext(transaction)) if creates else transaction.aside
        self._ids: dict[str, int] = {}

    def insert(self, rows: Iterable[EntitySearchRow]) -> None:
        for piece in slices(rows):
            self._transaction.insert("search", _KEY_COLUMNS, self._sorted(piece))

    def delete(self, rows: Iterable[EntitySearchRow]) -> None:
        for piece in slices(rows):
            self._transaction.delete("search", _KEY_COLUMNS, self._sorted(piece))

    def _sorted(self, rows: Sequence[EntitySearchRow]) -> list[tuple[int, str, str, int]]:
        self._intern({row[0] for row in rows} - self._ids.keys())
        ids = self._ids
        return sorted([(ids[key], value, written, entity) for key, value, written, entity in rows])

    def _intern(self, keys: set[str]) -> None:
        if not keys:
            return
        new = self._missing(self._transaction, sorted(keys))
        if not new:
            return
        with self._aside() as aside:
            aside.lock("search keys")
            new = self._missing(aside, new)  # others may have added some a moment ago
            fresh = list(zip(new, counters.take(aside, "search_key", len(new)), strict=True))
            aside.insert("search_keys", ("key", "id"), fresh)
        self._ids.update(fresh)

    def _missing(self, transaction: Transaction, keys: list[str]) -> list[str]:
        """Look keys up; returns those that are not stored yet."""
        found = transaction.all("SELECT key, id FROM search_keys WHERE key IN LIST(?)", (keys,))
        self._ids.update(found)
        return [key for key in keys if key not in self._ids]


def rebuild_search(transaction: Transaction) -> None:
    """Rebuild all search rows from the documents, for a migration that emptied the table."""
    interned, last = Interned(transaction, creates=True), 0
    while rows := transaction.all(
        f"SELECT e.id, e.ref, {DOCUMENT} FROM entities e WHERE e.id > ? ORDER BY e.id LIMIT ?",
        (last, _PORTION),
    ):
        interned.insert(
            [(*row, id_) for id_, ref, document in rows for row in Derived.of(ref, document).search]
        )
        last = rows[-1][0]


async def unfound(database: Database, sample: int) -> tuple[int, list[str]]:
    """The number of sampled entities, and the references of those that filters do not find.

    Each search row derived from a document is looked up by its key.
    """
    [low, high] = await database.one("SELECT MIN(id), MAX(id) FROM entities") or (None, None)
    if low is None:
        return 0, []
    step = max(1, (high - low) // sample)
    # At one moment: a push changes documents and rows together.
    async with database.moment() as moment:
        ids, refs, documents = await moment.columns(_SAMPLED, (list(range(low, high + 1, step)),))
        rows = list(zip(ids or (), refs or (), documents or (), strict=True))
        wrong = [ref for id_, ref, document in rows if not await _found(moment, id_, ref, document)]
    return len(rows), wrong


async def _found(moment: ReadSnapshot, id_: int, ref: str, document: str) -> bool:
    for row in Derived.of(ref, document).search:
        [stored] = await moment.columns(_STORED, (*row, id_))
        if not stored:
            return False
    return True


def portions(items: Iterable[T]) -> Iterator[list[T]]:
    """Slices of bounded length."""
    return slices(items, _PORTION)


def documents(items: Iterable[T], length: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Slices bounded both in number of items and in total length of their documents."""
    return weighed(items, length, most=_PORTION, heaviest=_LONGEST)


_SAMPLED = f"""
SELECT LIST_OF(e.id), LIST_OF(e.ref), LIST_OF({DOCUMENT}) FROM entities e WHERE e.id IN LIST(?)
"""

_STORED = """
SELECT LIST_OF(s.entity_id) FROM search s JOIN search_keys k ON k.id = s.key_id
WHERE k.key = ? AND s.value = ? AND s.original = ? AND s.entity_id = ?
"""
