"""The rows that an entity's document gives rise to: search rows, relations, compliance."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self, TypeVar

import msgspec

from factbook.catalog import compliance, relations, search
from factbook.catalog.store.documents import DOCUMENT
from factbook.storage import Transaction

T = TypeVar("T")

# Entities whose derived rows are in memory, and sorted without a pause, at the same time.
_PORTION = 1_000
_KEY_COLUMNS = ("key_id", "value", "original", "entity_id")

EntitySearchRow = tuple[str, str, str, int]  # key, value, value as written, entity

_decode = msgspec.json.Decoder().decode


class Derived(NamedTuple):
    """What is stored beside a document; `ref` is (kind, namespace, name)."""

    ref: tuple[str, str, str]
    search: set[search.SearchRow]
    edges: set[relations.Relation]
    compliance: int

    @classmethod
    def of(cls, ref: str, document: str) -> Self:
        """The rows of one document; relations count for compliance elsewhere."""
        kind, _, rest = ref.partition(":")
        namespace, _, name = rest.partition("/")
        entity = _decode(document)
        spec = entity.get("spec", {})
        edges, _ = relations.derive(kind, namespace, spec)
        bits = compliance.of_document(entity["metadata"], spec)
        return cls((kind, namespace, name), search.flatten(entity), edges, bits)


class Interned:
    """Search rows with their keys as integers, which makes the index a third smaller."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._ids: dict[str, int] = {}

    def insert(self, rows: Sequence[EntitySearchRow]) -> None:
        self._transaction.insert("search", _KEY_COLUMNS, self._sorted(rows))

    def delete(self, rows: Sequence[EntitySearchRow]) -> None:
        self._transaction.delete("search", _KEY_COLUMNS, self._sorted(rows))

    def _sorted(self, rows: Sequence[EntitySearchRow]) -> list[tuple[int, str, str, int]]:
        self._intern({row[0] for row in rows} - self._ids.keys())
        ids = self._ids
        return sorted([(ids[key], value, written, entity) for key, value, written, entity in rows])

    def _intern(self, keys: set[str]) -> None:
        if not keys:
            return
        wanted = sorted(keys)
        found = self._transaction.all(
            "SELECT key, id FROM search_keys WHERE key IN LIST(?)", (wanted,)
        )
        self._ids.update(found)
        new = [key for key in wanted if key not in self._ids]
        fresh = list(zip(new, take_ids(self._transaction, "search_key", len(new)), strict=True))
        self._transaction.insert("search_keys", ("key", "id"), fresh)
        self._ids.update(fresh)


def rebuild_search(transaction: Transaction) -> None:
    """Make every search row anew from the documents, for a migration that emptied the table."""
    interned, last = Interned(transaction), 0
    while rows := transaction.all(
        f"SELECT e.id, e.ref, {DOCUMENT} FROM entities e WHERE e.id > ? ORDER BY e.id LIMIT ?",
        (last, _PORTION),
    ):
        interned.insert(
            [(*row, id_) for id_, ref, document in rows for row in Derived.of(ref, document).search]
        )
        last = rows[-1][0]


def take_ids(transaction: Transaction, counter: str, count: int) -> range:
    """`count` integers that were never given before."""
    if count == 0:
        return range(0)
    row = transaction.one(
        "UPDATE counters SET value = value + ? WHERE name = ? RETURNING value", (count, counter)
    )
    assert row is not None
    return range(row[0] - count + 1, row[0] + 1)


def portions(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items in slices of bounded length."""
    return (items[start : start + _PORTION] for start in range(0, len(items), _PORTION))


def rendered(transaction: Transaction, refs: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """(relations, compliance, id) of those entities whose relations are no longer as stored."""
    wanted = list(refs)
    edges: dict[str, set[relations.Relation]] = {}
    for ref, type_, target in transaction.all(
        "SELECT e.ref, r.type, r.target_ref FROM entities e "
        "JOIN relations r ON r.source_id = e.id WHERE e.ref IN LIST(?)",
        (wanted,),
    ):
        edges.setdefault(ref, set()).add((type_, target))
    for ref, type_, source in transaction.all(
        "SELECT r.target_ref, r.type, s.ref FROM relations r "
        "JOIN entities s ON s.id = r.source_id WHERE r.target_ref IN LIST(?)",
        (wanted,),
    ):
        edges.setdefault(ref, set()).add((relations.REVERSE[type_], source))
    for ref, id_, bits, stored in transaction.all(
        "SELECT ref, id, compliance, relations FROM entities WHERE ref IN LIST(?)", (wanted,)
    ):
        now = edges.get(ref, set())
        if (text := relations.render(now)) != stored:
            yield text, compliance.with_relations(bits, now), id_
