"""Rows derived from an entity's document: search rows, relations and compliance.

An edge is stored in the rows of both its ends (0006). An entity with very many relations is not
rendered again for a few changes: the changed relations are looked up and inserted or removed.

A write can render entities of its own sets at any time, as it has locked their rows. Entities of
other owners may get edges from concurrent writes, so they are rendered last, under locks.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final, NamedTuple, Self, TypeVar

import msgspec

from factbook.catalog import kinds
from factbook.catalog.kinds import REVERSE_RELATIONS, Relation, RenderedRelations
from factbook.catalog.piecewise import ordered, slices, weighed
from factbook.catalog.store import conditions, locks
from factbook.catalog.store.conditions import SearchRow
from factbook.catalog.store.locks import WriteLocks
from factbook.catalog.store.stored_entities import DOCUMENT
from factbook.clock import Throttle
from factbook.storage import Database, Transaction
from factbook.storage.database import take_numbers

T = TypeVar("T")

# Limits on the number and the total length of entities whose derived rows are in memory at once.
# Each character of a document takes about 50 bytes of rows.
PORTION: Final = 1_000
_LONGEST_PORTION = 4_000_000
_KEY_COLUMNS = ("key_id", "value", "original", "entity_id")

EntitySearchRow = tuple[str, str, str, int]  # key, value, value as written, entity

_decode_document = msgspec.json.Decoder().decode

# Characters of rendered relations: about a thousand relations.
LARGE_ENTITY: Final = 64 * 1024
# With more changed edges in one write, everything is rendered again.
_FEW_EDGES = 1_000

# Keys checked, and deleted, at a time: few, so pushes do not wait long.
_KEYS_AT_ONCE: Final = 500


class Derived(NamedTuple):
    """Rows stored alongside a document; `ref` is (kind, namespace, name)."""

    ref: tuple[str, str, str]
    search: set[SearchRow]
    edges: set[kinds.Relation]
    compliance: int
    spec: kinds.Spec

    @classmethod
    def of(cls, ref: str, document: str, *, without_spec: bool = False) -> Self:
        """Derive the rows of one document, without the compliance bits of relations.

        With `without_spec`, only derive rows from the other parts of the document.
        """
        kind, _, rest = ref.partition(":")
        namespace, _, name = rest.partition("/")
        entity = _decode_document(document)
        spec = entity.get("spec", {})
        bits = kinds.compute_document_bits(entity["metadata"], spec)
        if without_spec:
            entity["spec"] = spec = {}
        edges, _ = kinds.derive_relations(kind, namespace, spec)
        return cls((kind, namespace, name), conditions.flatten_document(entity), edges, bits, spec)

    @property
    def former(self) -> set[kinds.Relation]:
        """Relations that an earlier release may have stored for the entity."""
        kind, namespace, _ = self.ref
        return kinds.former_relations(kind, namespace, self.spec)


class DerivedDiff(NamedTuple):
    """Rows to insert and delete when one document replaces another."""

    search_come: list[SearchRow]
    search_gone: list[SearchRow]
    edges_come: list[kinds.Relation]
    edges_gone: list[kinds.Relation]
    compliance: int

    @classmethod
    def of(cls, ref: str, before: str, after: str) -> Self:
        """The difference between two documents of one entity."""
        same = _read_spec(before) == _read_spec(after)
        old, new = (Derived.of(ref, text, without_spec=same) for text in (before, after))
        return cls(
            _subtract_rows(new.search, old.search),
            _subtract_rows(old.search, new.search),
            _subtract_rows(new.edges, old.edges),
            [*_subtract_rows(old.edges, new.edges), *old.former],
            new.compliance,
        )


class _Parts(msgspec.Struct):
    spec: msgspec.Raw = msgspec.Raw(b"")


_parts = msgspec.json.Decoder(_Parts).decode


def _read_spec(document: str) -> bytes:
    # Decoded values would compare true and 1 as equal, but the search index distinguishes them.
    return bytes(_parts(document).spec)


def _subtract_rows(rows: set[T], others: set[T]) -> list[T]:
    # A set difference would be one call, which blocks other threads.
    return [row for row in rows if row not in others]


class Interned:
    """Search rows with keys replaced by integers, which makes the index a third smaller.

    Keys are stored in a transaction `aside`, unless this one creates the table: otherwise a write
    would wait for another write with the same new key.
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
            new = self._missing(aside, new)  # other writes may just have added some
            fresh = list(zip(new, take_numbers(aside, "search_key", len(new)), strict=True))
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
        (last, PORTION),
    ):
        interned.insert(
            [(*row, id_) for id_, ref, document in rows for row in Derived.of(ref, document).search]
        )
        last = rows[-1][0]


async def find_unindexed(database: Database, sample: int) -> tuple[int, list[str]]:
    """The number of sampled entities, and the references of those missing from the search index.

    Looks up each search row derived from a sampled document.
    """
    [low, high] = await database.one("SELECT MIN(id), MAX(id) FROM entities") or (None, None)
    if low is None:
        return 0, []
    step = max(1, (high - low) // sample)
    # Read one snapshot: a push changes documents and rows together.
    async with database.moment() as moment:
        ids, refs, documents = await moment.columns(_SAMPLED, (list(range(low, high + 1, step)),))
        rows = list(zip(ids or (), refs or (), documents or (), strict=True))
        unindexed = []
        for id_, ref, document in rows:
            for row in Derived.of(ref, document).search:
                [stored] = await moment.columns(_STORED, (*row, id_))
                if not stored:
                    unindexed.append(ref)
                    break
    return len(rows), unindexed


def split_documents(items: Iterable[T], length: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Slices bounded both in number of items and in total length of their documents."""
    return weighed(items, length, most=PORTION, heaviest=_LONGEST_PORTION)


class RelationRenderer:
    """Renderer of the relations that one write changes.

    `touched` are the references at an end of a changed edge, `rendered` the ids of entities whose
    relations were written.
    """

    def __init__(self, transaction: Transaction, held: WriteLocks) -> None:
        self._transaction = transaction
        self._held = held
        self.touched: set[str] = set()
        self.rendered: set[int] = set()
        # Relations that may have been added or removed, by the entity that shows them; None: too
        # many.
        self._asked: dict[str, set[Relation]] | None = {}
        self._noted = 0

    def note(self, ref: str, edges: Iterable[Relation]) -> None:
        """Mark the ends of an entity's changed edges to be rendered."""
        for type_, target in edges:
            self.touched.add(target)
            self._noted += 1
            if self._noted > _FEW_EDGES:
                self._asked = None
            elif self._asked is not None:
                self._asked.setdefault(target, set()).add((REVERSE_RELATIONS[type_], ref))
                self._asked.setdefault(ref, set()).add((type_, target))

    def own(self, added: Collection[str]) -> None:
        """Render entities that no other write can render, nor refer to, as to the added ones."""
        early = self.touched if self._held.is_alone else self.touched.difference(added)
        for portion in slices(ordered(early), PORTION):
            found = self._owned(portion)
            own = {ref: id_ for ref, (id_, owner) in found.items() if self._held.owns(owner)}
            self._render(own)
            self.touched.difference_update(own)

    def others(self, added: dict[str, int]) -> None:
        """Render the rest, and added entities that other entities already refer to.

        Call it last: from here to the commit, other writes with the same references wait.
        """
        self._held.meet(self._transaction, [*self.touched, *added])
        late = self._pointed_to(added)
        for ref in late:
            if self._asked is not None:
                self._asked.pop(ref, None)
        if self._held.is_alone:
            self.touched.clear()  # the remaining entities do not exist
        for portion in slices(ordered(self.touched | late), PORTION):
            found = self._owned(portion)
            while self._held.share(self._transaction, {owner for _, owner in found.values()}):
                found = self._owned(portion)
            self._render({ref: id_ for ref, (id_, _) in found.items()})

    def _render(self, ids: dict[str, int]) -> None:
        rows = list(_read_rendered(self._transaction, ids, self._asked or {}))
        if not rows:
            return
        self._transaction.many(
            "UPDATE entities SET relations = ?, "
            # Another write may have set this bit since the row was read.
            f"compliance = (compliance & {kinds.OWNER_RENAMED}) | ? WHERE id = ?",
            rows,
        )
        self.rendered.update(row[2] for row in rows)

    def _owned(self, refs: list[str]) -> dict[str, tuple[int, str]]:
        """Ids and owners of the existing entities among these references."""
        # Many targets of relations may not exist, so relations are read only later.
        rows = self._transaction.all(
            "SELECT e.ref, e.id, s.name FROM entities e LEFT JOIN sets s ON s.id = e.set_id "
            "WHERE e.ref IN LIST(?)",
            (refs,),
        )
        return {ref: (id_, locks.owner(name, ref)) for ref, id_, name in rows}

    def _pointed_to(self, added: dict[str, int]) -> set[str]:
        """The added entities to which other entities state edges."""
        if not added:
            return set()
        sources = set(added.values())
        rows = self._transaction.all(
            "SELECT target_ref, source_id FROM relations WHERE target_ref IN LIST(?)",
            (list(added),),
        )
        return {ref for ref, source in rows if source not in sources}


def _read_rendered(
    transaction: Transaction, ids: dict[str, int], asked: Mapping[str, set[Relation]]
) -> Iterator[tuple[str, int, int]]:
    """(relations, compliance, id) of the entities whose relations differ from the stored ones."""
    if not ids:
        return
    stored = transaction.all(
        "SELECT ref, id, compliance, relations FROM entities WHERE id IN LIST(?)",
        (list(ids.values()),),
    )
    rest = list[tuple[int, int, str]]()
    for ref, id_, bits, text in stored:
        if len(text) <= LARGE_ENTITY or ref not in asked:
            rest.append((id_, bits, text))
            continue
        shown = RenderedRelations(text)
        if shown.change(asked[ref], _find_edges(transaction, ref, id_, asked[ref])):
            yield shown.text, bits & ~kinds.RELATION_BITS | shown.compliance, id_
    among = {id_ for id_, _, _ in rest}
    edges = _read_edges(transaction, {ref: id_ for ref, id_ in ids.items() if id_ in among})
    for id_, bits, text in rest:
        now = edges.get(id_, [])
        if (written := kinds.render_relations(now)) != text:
            yield written, kinds.replace_relation_bits(bits, now), id_


def _find_edges(
    transaction: Transaction, ref: str, id_: int, asked: Iterable[Relation]
) -> set[Relation]:
    """The relations in `asked` that either the entity or the other side states."""
    by_type: dict[str, list[str]] = {}
    for type_, target in asked:
        by_type.setdefault(type_, []).append(target)
    found = set[Relation]()
    for type_, targets in by_type.items():
        own = transaction.all(_OWN_EDGES, (id_, type_, targets))
        others = transaction.all(_OTHER_EDGES, (targets, REVERSE_RELATIONS[type_], ref))
        found |= {(type_, target) for (target,) in (*own, *others)}
    return found


def _read_edges(transaction: Transaction, ids: dict[str, int]) -> dict[int, list[Relation]]:
    """The relations of entities in both directions, by entity id."""
    edges: dict[int, list[Relation]] = {}
    for id_, type_, target in transaction.all(
        "SELECT source_id, type, target_ref FROM relations WHERE source_id IN LIST(?)",
        (list(ids.values()),),
    ):
        edges.setdefault(id_, []).append((type_, target))
    for ref, type_, source in transaction.all(
        "SELECT r.target_ref, r.type, s.ref FROM relations r "
        "JOIN entities s ON s.id = r.source_id WHERE r.target_ref IN LIST(?)",
        (list(ids),),
    ):
        edges.setdefault(ids[ref], []).append((kinds.REVERSE_RELATIONS[type_], source))
    return edges


async def sweep_search_keys(database: Database, pace: Throttle) -> int:
    """Delete keys without search rows, in portions; returns their number."""
    last, gone = -1, 0
    while rows := await database.search(_KEY_USES, (last, _KEYS_AT_ONCE)):
        last = rows[-1][0]
        unused = [id_ for id_, used in rows if used is None]
        if unused:
            gone += await database.write(partial(_forget_search_keys, ids=unused))
        await pace.rest()
    return gone


def _forget_search_keys(transaction: Transaction, *, ids: list[int]) -> int:
    # A push may have used one of these keys since they were listed. Pushes share this lock from
    # before they look up keys until their rows are committed.
    locks.lock_alone(transaction)
    return transaction.run(_FORGET_KEYS, (ids,))


_SAMPLED = f"""
SELECT LIST_OF(e.id), LIST_OF(e.ref), LIST_OF({DOCUMENT}) FROM entities e WHERE e.id IN LIST(?)
"""

_STORED = """
SELECT LIST_OF(s.entity_id) FROM search s JOIN search_keys k ON k.id = s.key_id
WHERE k.key = ? AND s.value = ? AND s.original = ? AND s.entity_id = ?
"""

_OWN_EDGES = """
SELECT target_ref FROM relations WHERE source_id = ? AND type = ? AND target_ref IN LIST(?)
"""

_OTHER_EDGES = """
SELECT s.ref FROM entities s JOIN relations r ON r.source_id = s.id
WHERE s.ref IN LIST(?) AND r.type = ? AND r.target_ref = ?
"""

# The LIMIT keeps PostgreSQL from reading all search rows for the keys of one page.
_KEY_USES: Final = """
SELECT k.id, (SELECT s.key_id FROM search s WHERE s.key_id = k.id LIMIT 1)
FROM search_keys k WHERE k.id > ? ORDER BY k.id LIMIT ?
"""

_FORGET_KEYS: Final = """
DELETE FROM search_keys WHERE id IN LIST(?)
AND (SELECT s.key_id FROM search s WHERE s.key_id = search_keys.id LIMIT 1) IS NULL
"""
