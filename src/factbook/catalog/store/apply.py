"""Writes of entities: one plan, one transaction, and every derived table updated.

What other writes may change at the same time is changed last (catalog/store/locks.py).
"""

import uuid
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from factbook.catalog import compliance, identity, relations
from factbook.catalog.piecewise import ordered, slices
from factbook.catalog.sets import Prepared
from factbook.catalog.store import removed, revisions, set_events
from factbook.catalog.store.diff import Existing, SetRow, WritePlan
from factbook.catalog.store.documents import DOCUMENT, split
from factbook.catalog.store.index_rows import (
    Derived,
    DerivedDiff,
    EntitySearchRow,
    Interned,
    documents,
    portions,
)
from factbook.catalog.store.locks import WriteLocks
from factbook.catalog.store.relation_renderer import RelationRenderer
from factbook.events import store as events
from factbook.storage import Row, Transaction, counters

_ENTITY_COLUMNS = (
    "id", "uid", "ref", "kind", "namespace", "name", "set_id", "etag", "updated_by",
    "updated_at", "compliance", "head", "body", "relations", "problems",
)  # fmt: skip

_RELATION_COLUMNS = ("source_id", "type", "target_ref")

# Told of entities that were added, changed or removed, or whose relations changed.
TOUCHED: Final = ("entities",)
# Told of those that were added, removed, or moved to another reference.
COME_AND_GONE: Final = ("entities that come and go",)

Edge = tuple[int, str, str]  # source, type, target reference


class Actor(NamedTuple):
    """User and time of a write."""

    ref: str
    now: int


class WriteResult(NamedTuple):
    """The set's revision, and uid, updated_by and updated_at of every entity of the plan."""

    revision: int
    items: dict[str, tuple[str, str, int]]


def apply(
    transaction: Transaction,
    plan: WritePlan,
    actor: Actor,
    held: WriteLocks,
    *,
    kept: int,
    restored: int | None = None,
) -> WriteResult:
    """Carry out a plan, with a new revision of the set if it changes anything.

    `held` are the locks under which the plan was made; `kept` revisions of the set are kept.
    """
    held.require(plan.losers)
    items = {item.ref: (item.uid, item.updated_by, item.updated_at) for item in plan.unchanged}
    target = plan.set
    if plan.is_empty:
        if plan.order is not None and target is not None:
            _write_order(transaction, target.id, plan.order)
        return WriteResult(target.revision if target else 0, items)
    if target is not None and not target.id:
        target = _create_set(transaction, target.name, actor)
    _leave_other_sets(transaction, [existing for _, existing in plan.taken], actor)
    if target is not None:
        target = revisions.record(transaction, target, plan, actor.ref, actor.now, restored)
        revisions.trim_set(transaction, target, kept)
    changed = _Changes(transaction, actor, target, held)
    changed.remove(plan.removed)
    changed.update([*plan.updated, *plan.taken])
    changed.add(plan.added)
    added = {item.ref: changed.ids[item.ref] for item in plan.added}
    changed.rendering.own(added)
    if target is not None:
        _write_membership(transaction, target.id, plan, changed.ids)
    events.append(transaction, set_events.of_plan(target, plan, actor.ref, restored), actor.now)
    changed.rendering.others(added)
    gone = {item.id for item in plan.removed}
    transaction.touch(TOUCHED, {*changed.ids.values(), *changed.rendering.rendered, *gone})
    came = {changed.ids[item.ref] for item in plan.added}
    transaction.touch(COME_AND_GONE, came | gone)
    items |= {ref: (uid, actor.ref, actor.now) for ref, uid in changed.uids.items()}
    return WriteResult(target.revision if target else 0, items)


class _Changes:
    """Rows changed by one plan."""

    def __init__(
        self, transaction: Transaction, actor: Actor, target: SetRow | None, held: WriteLocks
    ) -> None:
        self._held = held
        self._transaction = transaction
        self._actor = actor
        self._set_id = target.id if target else None
        self._set_name = target.name if target else None
        self._interned = Interned(transaction)
        self.rendering = RelationRenderer(transaction, held)
        self.ids: dict[str, int] = {}
        self.uids: dict[str, str] = {}

    def remove(self, gone: Sequence[Existing]) -> None:
        lengths = self._lengths(gone)
        for portion in documents(gone, lambda item: lengths[item.id]):
            ids = [item.id for item in portion]
            stored = self._stored(ids)
            keys = {id_: self._memory_key(text) for id_, _, text in stored}
            leaving = [(item.ref, item.id, item.uid) for item in portion]
            removed.remember(self._transaction, leaving, keys, self._actor.now)
            before = [(id_, ref, Derived.of(ref, text)) for id_, ref, text in stored]
            self._interned.delete((*row, id_) for id_, _, had in before for row in had.search)
            for _, ref, had in before:
                self.rendering.note(ref, (*had.edges, *had.former))
            self._transaction.run("DELETE FROM relations WHERE source_id IN LIST(?)", (ids,))
            self._transaction.run("DELETE FROM entities WHERE id IN LIST(?)", (ids,))

    def update(self, updated: Sequence[tuple[Prepared, Existing]]) -> None:
        lengths = self._lengths([existing for _, existing in updated])
        for portion in documents(updated, lambda pair: len(pair[0].document) + lengths[pair[1].id]):
            stored = {id_: text for id_, _, text in self._stored([old.id for _, old in portion])}
            rows: list[tuple[object, ...]] = []
            come: list[EntitySearchRow] = []
            gone: list[EntitySearchRow] = []
            for item, existing in portion:
                id_ = existing.id
                difference = DerivedDiff.of(item.ref, stored[id_], item.document)
                come += [(*row, id_) for row in difference.search_come]
                gone += [(*row, id_) for row in difference.search_gone]
                self._replace_edges(item.ref, id_, difference)
                rows.append((
                    self._set_id, item.etag, self._actor.ref, self._actor.now,
                    *split(item.document), item.problems, compliance.RELATION_BITS,
                    difference.compliance, id_,
                ))  # fmt: skip
                self.ids[item.ref], self.uids[item.ref] = id_, existing.uid
            self._interned.delete(gone)
            self._interned.insert(come)
            self._transaction.many(_UPDATE, rows)

    def add(self, added: Sequence[Prepared]) -> None:
        refs = [item.ref for item in added]
        known = dict[str, tuple[int, str]]()
        if refs and removed.any_of(self._transaction):
            keys = {item.ref: self._memory_key(item.document) for item in added}
            known = removed.recall(self._transaction, keys)
        fresh = iter(counters.take_aside(self._transaction, "entity", len(added) - len(known)))
        given = {ref: known.get(ref) or (next(fresh), str(uuid.uuid4())) for ref in refs}
        if not self._held.is_alone:
            # In one order, as of two writes that add the same the second waits for the first.
            by_ref = {item.ref: item for item in added}
            added = [by_ref[ref] for ref in ordered(by_ref)]
        for portion in documents(added, lambda item: len(item.document)):
            rows: list[tuple[object, ...]] = []
            search_rows: list[EntitySearchRow] = []
            edges: list[Edge] = []
            for item in portion:
                id_, uid = given[item.ref]
                derived = Derived.of(item.ref, item.document)
                search_rows += [(*row, id_) for row in derived.search]
                edges += [(id_, *edge) for edge in derived.edges]
                self.rendering.note(item.ref, derived.edges)
                bits = compliance.with_relations(derived.compliance, derived.edges)
                rows.append((
                    id_, uid, item.ref, *derived.ref, self._set_id, item.etag, self._actor.ref,
                    self._actor.now, bits, *split(item.document), relations.render(derived.edges),
                    item.problems,
                ))  # fmt: skip
                self.ids[item.ref], self.uids[item.ref] = id_, uid
            self._transaction.insert("entities", _ENTITY_COLUMNS, rows)
            self._interned.insert(search_rows)
            self._insert_edges(edges)
        if refs and not self._held.is_alone:
            removed.check(self._transaction, refs)

    def _memory_key(self, document: str) -> str:
        return removed.memory_key(self._set_name, identity.external_id(document)[1])

    def _lengths(self, stored: Sequence[Existing]) -> dict[int, int]:
        """The approximate lengths of these entities' documents, within a few characters."""
        lengths: dict[int, int] = {}
        for portion in portions(item.id for item in stored):
            lengths |= self._transaction.all(
                "SELECT id, length(body) FROM entities WHERE id IN LIST(?)", (portion,)
            )
        return lengths

    def _stored(self, ids: list[int]) -> list[Row]:
        """Id, reference and document of each of these entities."""
        return self._transaction.all(
            f"SELECT e.id, e.ref, {DOCUMENT} FROM entities e WHERE e.id IN LIST(?)", (ids,)
        )

    def _replace_edges(self, ref: str, id_: int, difference: DerivedDiff) -> None:
        """Insert and delete the edges that differ, leaving the others alone."""
        come, gone = difference.edges_come, difference.edges_gone
        if not come and not gone:
            return
        self.rendering.note(ref, (*come, *gone))
        self.rendering.touched.add(ref)
        for piece in slices((id_, *edge) for edge in gone):
            self._transaction.delete("relations", _RELATION_COLUMNS, piece)
        self._insert_edges((id_, *edge) for edge in come)

    def _insert_edges(self, edges: Iterable[Edge]) -> None:
        for piece in slices(edges):
            self._transaction.insert("relations", _RELATION_COLUMNS, sorted(piece))


_UPDATE = """
UPDATE entities SET set_id = ?, etag = ?, updated_by = ?, updated_at = ?, head = ?,
    body = ?, problems = ?, compliance = (compliance & ?) | ? WHERE id = ?
"""


def _create_set(transaction: Transaction, name: str, actor: Actor) -> SetRow:
    [id_] = counters.take_aside(transaction, "set", 1)
    transaction.run(
        "INSERT INTO sets (id, name, revision, item_count, updated_by, updated_at) "
        "VALUES (?, ?, 0, 0, ?, ?)",
        (id_, name, actor.ref, actor.now),
    )
    return SetRow(id_, name, 0, 0)


def _leave_other_sets(transaction: Transaction, taken: Sequence[Existing], actor: Actor) -> None:
    """Write a new revision of every set that loses entities to this one."""
    if not taken:
        return
    rows = transaction.all(
        "SELECT e.ref, s.id, s.name, s.revision, s.item_count FROM entities e "
        "JOIN sets s ON s.id = e.set_id WHERE e.id IN LIST(?) ORDER BY s.id",
        ([item.id for item in taken],),
    )
    by_ref = {item.ref: item for item in taken}
    losers: dict[SetRow, list[Existing]] = {}
    for ref, *columns in rows:
        losers.setdefault(SetRow(*columns), []).append(by_ref[ref])
    for loser, lost in losers.items():
        left = revisions.record(
            transaction, loser, WritePlan(loser, removed=lost), actor.ref, actor.now
        )
        events.append(transaction, [set_events.of_loss(left, lost, actor.ref)], actor.now)
        _leave(transaction, loser.id, lost)


def _write_membership(
    transaction: Transaction, set_id: int, plan: WritePlan, ids: dict[str, int]
) -> None:
    if plan.order is not None:
        _write_order(transaction, set_id, plan.order)
        return
    _leave(transaction, set_id, plan.removed)
    [last] = transaction.one(
        "SELECT coalesce(max(position), -1) FROM set_items WHERE set_id = ?", (set_id,)
    ) or (-1,)
    new = [*plan.added, *(item for item, _ in plan.taken)]
    transaction.insert(
        "set_items",
        ("set_id", "position", "entity_id"),
        [(set_id, last + 1 + place, ids[item.ref]) for place, item in enumerate(new)],
    )


def _leave(transaction: Transaction, set_id: int, gone: Sequence[Existing]) -> None:
    transaction.run(
        "DELETE FROM set_items WHERE set_id = ? AND entity_id IN LIST(?)",
        (set_id, [item.id for item in gone]),
    )


def _write_order(transaction: Transaction, set_id: int, order: list[str]) -> None:
    transaction.run("DELETE FROM set_items WHERE set_id = ?", (set_id,))
    ids: dict[str, int] = dict(
        transaction.all("SELECT ref, id FROM entities WHERE set_id = ?", (set_id,))
    )
    transaction.insert(
        "set_items",
        ("set_id", "position", "entity_id"),
        [(set_id, position, ids[ref]) for position, ref in enumerate(order)],
    )
