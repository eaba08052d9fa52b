"""The push interface: replace a set, change one entity, restore a revision, and read sets.

A push is one plan, applied in one transaction that updates every derived table. Rows that
concurrent writes may change are written last, under the locks of catalog/store/locks.py. A write
that names an owner waits for one that adds or removes the owner, and vice versa; the second sees
the commit of the first.

Functions that write accept `write`, which runs a function in a transaction and defaults to the
database's own.
"""

import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn, TypeVar

from factbook.auth.permissions import SET_WRITE, TITLES
from factbook.auth.tokens import Narrowing
from factbook.catalog import kinds, people_trust, sets
from factbook.catalog.kinds import OWNER_RENAMED
from factbook.catalog.people_trust import IMPORTED, PeopleTrust
from factbook.catalog.piecewise import ordered, slices
from factbook.catalog.ref import find_external_id
from factbook.catalog.sets import Prepared, PreparedPush, PushRules
from factbook.catalog.store import conditions, diff, locks, revisions
from factbook.catalog.store.diff import Existing, Guards, SetRow, WritePlan
from factbook.catalog.store.index_rows import (
    PORTION,
    Derived,
    DerivedDiff,
    EntitySearchRow,
    Interned,
    RelationRenderer,
    split_documents,
)
from factbook.catalog.store.locks import WriteLocks
from factbook.catalog.store.revisions import SetRevision
from factbook.catalog.store.stored_entities import DOCUMENT, split_document
from factbook.errors import NotAllowedError, NotFoundError, no_such
from factbook.events.store import append_events
from factbook.storage import Database, Row, Transaction, Write
from factbook.storage.database import take_numbers_aside

_ENTITY_COLUMNS = (
    "id", "uid", "ref", "kind", "namespace", "name", "set_id", "etag", "updated_by",
    "updated_at", "compliance", "head", "body", "relations", "problems",
)  # fmt: skip

_RELATION_COLUMNS = ("source_id", "type", "target_ref")

# Topic for entities that were added, changed or removed, or whose relations changed.
TOUCHED_ENTITIES: Final = ("entities",)
# Topic for entities that were added, removed, or moved to another reference.
COME_AND_GONE: Final = ("entities that come and go",)

Edge = tuple[int, str, str]  # source, type, target reference

T = TypeVar("T")

_OWNERS_AT_ONCE: Final = 500

_OWNED_ENTITIES: Final = (
    "SELECT source_id FROM relations WHERE type = 'ownedBy' AND target_ref IN LIST(?)"
)
_PUSHED_ENTITIES: Final = f"""
{_OWNED_ENTITIES} AND source_id IN (
    SELECT e.id FROM entities e JOIN sets s ON s.id = e.set_id WHERE s.name NOT LIKE ?
)
"""


class Actor(NamedTuple):
    """User and time of a write."""

    ref: str
    now: int


class WriteResult(NamedTuple):
    """The set's revision, and uid, updated_by and updated_at of every entity of the plan."""

    revision: int
    items: dict[str, tuple[str, str, int]]


def apply_plan(
    transaction: Transaction,
    plan: WritePlan,
    actor: Actor,
    held: WriteLocks,
    *,
    kept: int,
    restored: int | None = None,
) -> WriteResult:
    """Apply a plan, with a new revision of the set if anything changes.

    `held` are the locks under which the plan was made; the newest `kept` revisions are kept.
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
        target = revisions.record_revision(
            transaction, target, plan, actor.ref, actor.now, restored
        )
        revisions.trim_revisions_of_set(transaction, target, kept)
    changed = _Changes(transaction, actor, target, held)
    if plan.removed:
        changed.remove(plan.removed)
    if plan.updated or plan.taken:
        changed.update([*plan.updated, *plan.taken])
    if plan.added:
        changed.add(plan.added)
    added = {item.ref: changed.ids[item.ref] for item in plan.added}
    changed.rendering.own(added)
    if target is not None:
        _write_membership(transaction, target.id, plan, changed.ids)
    append_events(transaction, diff.make_plan_events(target, plan, actor.ref, restored), actor.now)
    changed.rendering.others(added)
    gone = {item.id for item in plan.removed}
    transaction.touch(TOUCHED_ENTITIES, {*changed.ids.values(), *changed.rendering.rendered, *gone})
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
        for portion in split_documents(gone, lambda item: lengths[item.id]):
            ids = [item.id for item in portion]
            stored = self._stored(ids)
            keys = {id_: self._memory_key(text) for id_, _, text in stored}
            leaving = [(item.ref, item.id, item.uid) for item in portion]
            revisions.remember_removed(self._transaction, leaving, keys, self._actor.now)
            before = [(id_, ref, Derived.of(ref, text)) for id_, ref, text in stored]
            self._interned.delete((*row, id_) for id_, _, had in before for row in had.search)
            for _, ref, had in before:
                self.rendering.note(ref, (*had.edges, *had.former))
            self._transaction.run("DELETE FROM relations WHERE source_id IN LIST(?)", (ids,))
            self._transaction.run("DELETE FROM entities WHERE id IN LIST(?)", (ids,))

    def update(self, updated: Sequence[tuple[Prepared, Existing]]) -> None:
        lengths = self._lengths([existing for _, existing in updated])
        for portion in split_documents(
            updated, lambda pair: len(pair[0].document) + lengths[pair[1].id]
        ):
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
                    *split_document(item.document), item.problems, kinds.RELATION_BITS,
                    difference.compliance, id_,
                ))  # fmt: skip
                self.ids[item.ref], self.uids[item.ref] = id_, existing.uid
            self._interned.delete(gone)
            self._interned.insert(come)
            self._transaction.many(_UPDATE_ENTITY, rows)

    def add(self, added: Sequence[Prepared]) -> None:
        refs = [item.ref for item in added]
        known = dict[str, tuple[int, str]]()
        if revisions.remembers_removed(self._transaction):
            keys = {item.ref: self._memory_key(item.document) for item in added}
            known = revisions.recall_removed(self._transaction, keys)
        fresh = iter(take_numbers_aside(self._transaction, "entity", len(added) - len(known)))
        given = {ref: known.get(ref) or (next(fresh), str(uuid.uuid4())) for ref in refs}
        if not self._held.is_alone:
            # In a fixed order, as concurrent writes that add the same entities wait for each other.
            by_ref = {item.ref: item for item in added}
            added = [by_ref[ref] for ref in ordered(by_ref)]
        for portion in split_documents(added, lambda item: len(item.document)):
            rows: list[tuple[object, ...]] = []
            search_rows: list[EntitySearchRow] = []
            edges: list[Edge] = []
            for item in portion:
                id_, uid = given[item.ref]
                derived = Derived.of(item.ref, item.document)
                search_rows += [(*row, id_) for row in derived.search]
                edges += [(id_, *edge) for edge in derived.edges]
                self.rendering.note(item.ref, derived.edges)
                bits = kinds.replace_relation_bits(derived.compliance, derived.edges)
                rows.append((
                    id_, uid, item.ref, *derived.ref, self._set_id, item.etag, self._actor.ref,
                    self._actor.now, bits, *split_document(item.document),
                    kinds.render_relations(derived.edges), item.problems,
                ))  # fmt: skip
                self.ids[item.ref], self.uids[item.ref] = id_, uid
            self._transaction.insert("entities", _ENTITY_COLUMNS, rows)
            self._interned.insert(search_rows)
            self._insert_edges(edges)
        if not self._held.is_alone:
            revisions.check_removed(self._transaction, refs)

    def _memory_key(self, document: str) -> str:
        return revisions.make_memory_key(self._set_name, find_external_id(document)[1])

    def _lengths(self, stored: Sequence[Existing]) -> dict[int, int]:
        """The approximate lengths of these entities' documents, within a few characters."""
        lengths: dict[int, int] = {}
        for portion in slices((item.id for item in stored), PORTION):
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
        """Insert and delete only the edges that differ."""
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


def _create_set(transaction: Transaction, name: str, actor: Actor) -> SetRow:
    [id_] = take_numbers_aside(transaction, "set", 1)
    transaction.run(
        "INSERT INTO sets (id, name, revision, item_count, updated_by, updated_at) "
        "VALUES (?, ?, 0, 0, ?, ?)",
        (id_, name, actor.ref, actor.now),
    )
    return SetRow(id_, name, 0, 0)


def _leave_other_sets(transaction: Transaction, taken: Sequence[Existing], actor: Actor) -> None:
    """Write a new revision of every set that loses entities to this write."""
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
        left = revisions.record_revision(
            transaction, loser, WritePlan(loser, removed=lost), actor.ref, actor.now
        )
        append_events(transaction, [diff.make_loss_event(left, lost, actor.ref)], actor.now)
        _leave_set(transaction, loser.id, lost)


def _write_membership(
    transaction: Transaction, set_id: int, plan: WritePlan, ids: dict[str, int]
) -> None:
    if plan.order is not None:
        _write_order(transaction, set_id, plan.order)
        return
    if plan.removed:
        _leave_set(transaction, set_id, plan.removed)
    [last] = transaction.one(
        "SELECT coalesce(max(position), -1) FROM set_items WHERE set_id = ?", (set_id,)
    ) or (-1,)
    new = [*plan.added, *(item for item, _ in plan.taken)]
    transaction.insert(
        "set_items",
        ("set_id", "position", "entity_id"),
        [(set_id, last + 1 + place, ids[item.ref]) for place, item in enumerate(new)],
    )


def _leave_set(transaction: Transaction, set_id: int, gone: Sequence[Existing]) -> None:
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


class StoredSet(NamedTuple):
    """A set in a list of sets."""

    id: str
    item_count: int
    revision: int
    updated_by: str
    updated_at: int


class StoredItem(NamedTuple):
    """A pushed entity; `document` is JSON text, `set` None for an entity outside any set."""

    uid: str
    ref: str
    document: str
    set: str | None
    updated_by: str
    updated_at: int


class PushResult(NamedTuple):
    """Result of a push; `written` is None for a dry run, `grant` is the member's grant."""

    plan: WritePlan
    written: WriteResult | None
    grant: str = ""


async def replace_set(
    database: Database,
    name: str,
    wanted: Sequence[Prepared],
    actor: Actor,
    guards: Guards,
    *,
    kept: int,
    dry_run: bool = False,
    write: Write | None = None,
) -> PushResult:
    """Make `wanted` the whole content of a set, keeping `kept` revisions of it.

    Raises ConflictError or PreconditionFailedError; in that case, as in a dry run, nothing is
    written.
    """

    held = WriteLocks({locks.owner(name, ""): dry_run}, guards.owned)

    def work(transaction: Transaction) -> PushResult:
        held.begin(transaction)
        plan = diff.plan_replacement(transaction, name, wanted, guards)
        if dry_run:
            return PushResult(plan, None)
        written = apply_plan(transaction, plan, actor, held, kept=kept)
        grant = held.end(transaction)
        transaction.evaluate_checks()
        return PushResult(plan, written, grant)

    return await (write or database.write)(work)


async def put_entity(
    database: Database,
    name: str | None,
    item: Prepared,
    actor: Actor,
    guards: Guards,
    rules: PushRules,
    *,
    kept: int,
    write: Write | None = None,
) -> PushResult:
    """Add or update one entity in a set, or outside any set if `name` is None.

    Raises PayloadTooLargeError if the set is full, and the errors of `replace_set`.
    """

    held = WriteLocks({locks.owner(name, item.ref): False}, guards.owned)

    def work(transaction: Transaction) -> PushResult:
        held.begin(transaction)
        plan = diff.plan_addition(transaction, name, [item], guards)
        if plan.set is not None and plan.changes["added"]:
            sets.check_set_size(plan.set.item_count + 1, rules)
        written = apply_plan(transaction, plan, actor, held, kept=kept)
        grant = held.end(transaction)
        transaction.evaluate_checks()
        return PushResult(plan, written, grant)

    return await (write or database.write)(work)


async def remove_entity(
    database: Database,
    uid: str,
    actor: Actor,
    *,
    kept: int,
    narrowing: Narrowing | None = None,
    write: Write | None = None,
) -> PushResult | None:
    """Remove one entity, in a set or not; None if there is none.

    Raises NotAllowedError if the token's narrowing excludes the entity.
    """

    held = WriteLocks({})

    def work(transaction: Transaction) -> PushResult | None:
        held.begin(transaction)
        plan = diff.plan_removal(transaction, uid, narrowing)
        if plan is None:
            return None
        # It may have moved to another set before its own was locked.
        held.require({locks.owner(plan.set and plan.set.name, item.ref) for item in plan.removed})
        written = apply_plan(transaction, plan, actor, held, kept=kept)
        transaction.evaluate_checks()
        return PushResult(plan, written)

    return await (write or database.write)(work)


async def restore_revision(
    database: Database,
    name: str,
    number: int,
    actor: Actor,
    guards: Guards,
    rules: PushRules,
    *,
    kept: int,
    write: Write | None = None,
) -> tuple[PreparedPush, PushResult]:
    """Restore the content of a set after revision `number`, as a new revision.

    Raises NotFoundError if that revision is not kept, InvalidItemsError if the rules have become
    stricter since, and the errors of `replace_set`.
    """

    held = WriteLocks({locks.owner(name, ""): False}, guards.owned)

    def work(transaction: Transaction) -> tuple[PreparedPush, PushResult]:
        held.begin(transaction)
        target = diff.read_set_row(transaction, name)
        documents = revisions.read_documents_at(transaction, target, number)
        with revisions.reword_rejection(number):
            push = sets.prepare_items(
                [sets.make_raw_item(document) for document in documents], name, rules
            )
            plan = diff.plan_replacement(transaction, name, push.items, guards)
        written = apply_plan(transaction, plan, actor, held, kept=kept, restored=number)
        grant = held.end(transaction)
        transaction.evaluate_checks()
        return push, PushResult(plan, written, grant)

    return await (write or database.write)(work)


async def list_sets(database: Database) -> list[StoredSet]:
    """Every set that has items, by name."""
    rows = await database.all(f"{_SET_COLUMNS} WHERE item_count > 0 ORDER BY name")
    return [StoredSet(*row) for row in rows]


async def list_namespaces(database: Database, prefix: str) -> dict[str, list[str]]:
    """The namespaces of entities, for each set whose name begins with `prefix`."""
    rows = await database.all(
        "SELECT DISTINCT s.name, e.namespace FROM sets s JOIN entities e ON e.set_id = s.id "
        "WHERE s.name LIKE ? ORDER BY s.name, e.namespace",
        (f"{prefix}%",),
    )
    found: dict[str, list[str]] = {}
    for name, namespace in rows:
        found.setdefault(name, []).append(namespace)
    return found


async def list_emptied_sets(database: Database, limit: int) -> list[StoredSet]:
    """Empty sets that can still be restored, most recently emptied first."""
    rows = await database.all(
        f"{_SET_COLUMNS} WHERE item_count = 0 "
        "AND EXISTS (SELECT 1 FROM revisions r WHERE r.set_id = sets.id) "
        "ORDER BY updated_at DESC, name LIMIT ?",
        (limit,),
    )
    return [StoredSet(*row) for row in rows]


async def read_set(database: Database, name: str) -> StoredSet:
    """One set, even if it is empty now; raises NotFoundError for a set that never existed."""
    row = await database.one(f"{_SET_COLUMNS} WHERE name = ?", (name,))
    if row is None:
        raise await _make_no_set_error(database, name)
    return StoredSet(*row)


async def list_set_revisions(database: Database, name: str) -> list[SetRevision]:
    """The revisions of a set, newest first, even if it is empty now; raises NotFoundError."""
    row = await database.one("SELECT id FROM sets WHERE name = ?", (name,))
    if row is None:
        raise await _make_no_set_error(database, name)
    return await revisions.list_revisions(database, row[0])


async def _make_no_set_error(database: Database, name: str) -> NotFoundError:
    rows = await database.all("SELECT name FROM sets WHERE item_count > 0 ORDER BY name")
    return no_such("set", name, [one for (one,) in rows])


class SetContentPage(NamedTuple):
    """Items of a set in order; `more` is the position after which the next page begins."""

    revision: int
    items: list[StoredItem]
    more: int | None


class Content(NamedTuple):
    """The whole content of a set, its items in portions."""

    revision: int
    portions: AsyncIterator[list[StoredItem]]


async def page_content(
    database: Database, name: str, limit: int, after: int = -1
) -> SetContentPage:
    """Up to `limit` items after the position `after`; raises NotFoundError for an unknown set."""
    rows = await database.all(f"{_CONTENT} LIMIT ?", (after, name, limit + 1))
    if not rows:
        raise await _make_no_set_error(database, name)
    more = rows[limit - 1][1] if len(rows) > limit else None
    return SetContentPage(rows[0][0], _read_items(rows[:limit]), more)


async def read_content(database: Database, name: str) -> Content:
    """Every item of a set, from one snapshot; raises NotFoundError for an unknown set."""
    pages = database.pages(_CONTENT, (-1, name))
    first = await anext(pages, None)
    if first is None:
        raise await _make_no_set_error(database, name)

    async def portions() -> AsyncIterator[list[StoredItem]]:
        yield _read_items(first)
        async for rows in pages:
            yield _read_items(rows)

    return Content(first[0][0], portions())


def _read_items(rows: list[Row]) -> list[StoredItem]:
    return [StoredItem(*columns) for _, position, *columns in rows if position is not None]


async def stream_items(database: Database) -> AsyncIterator[list[StoredItem]]:
    """Every pushed entity, by reference, in portions."""
    async for rows in database.pages(f"{_ITEM_COLUMNS} ORDER BY e.ref"):
        yield [StoredItem(*row) for row in rows]


async def find_holders(
    database: Database, key: str, external_ids: Collection[str]
) -> list[tuple[str, str, str]]:
    """Entities in sets with these external ids under an annotation: the id, reference and set."""
    if not external_ids:
        return []
    given = {conditions.make_search_text(one): one for one in external_ids}
    rows = await database.all(_HOLDERS, (f"metadata.annotations.{key}".lower(), sorted(given)))
    return [(given[value], ref, name) for value, ref, name in rows]


async def read_item_by_uid(database: Database, uid: str) -> StoredItem | None:
    """The pushed entity with this uid."""
    row = await database.one(f"{_ITEM_COLUMNS} WHERE e.uid = ?", (uid,))
    return StoredItem(*row) if row else None


async def read_item_by_ref(database: Database, ref: str) -> StoredItem | None:
    """The pushed entity with this canonical reference."""
    row = await database.one(f"{_ITEM_COLUMNS} WHERE e.ref = ?", (ref,))
    return StoredItem(*row) if row else None


def sweep_history(
    transaction: Transaction, kept: int, revisions_before: int, removed_before: int
) -> list[int]:
    """Forget old revisions and old removed entities; returns the ids of those entities."""
    locks.lock_alone(transaction)
    revisions.trim_revisions(transaction, kept, revisions_before)
    gone = revisions.forget_removed(transaction, removed_before)
    transaction.touch(TOUCHED_ENTITIES, gone)
    return gone


@dataclass(frozen=True)
class SetChange:
    """Entities to add or update, and references to remove."""

    wanted: Sequence[Prepared] = ()
    gone: Collection[str] = ()


async def change_set(
    write: Write,
    name: str,
    decide: Callable[[Transaction], tuple[SetChange, T]],
    actor: Actor,
    rules: PushRules,
    *,
    kept: int,
) -> T:
    """Apply the change returned by `decide`, and return its other result.

    `decide` is called with the set locked, and again if the transaction restarts. Raises
    ConflictError if another owner has one of the entities, PayloadTooLargeError if the set is full.
    """
    held = WriteLocks({locks.owner(name, ""): False})

    def work(transaction: Transaction) -> T:
        held.begin(transaction)
        wanted, result = decide(transaction)
        plan = diff.plan_addition(transaction, name, wanted.wanted, Guards(), wanted.gone)
        if plan.set is not None and plan.added:
            sets.check_set_size(plan.set.item_count + len(plan.added) - len(plan.removed), rules)
        apply_plan(transaction, plan, actor, held, kept=kept)
        transaction.evaluate_checks()
        return result

    return await write(work)


def find_foreign_owners(
    transaction: Transaction, name: str, refs: Collection[str]
) -> dict[str, str]:
    """The references that belong to other owners than this set, each with its owner.

    References that this set may take because it outranks their owner are omitted.
    """
    found = diff.read_owners(transaction, list(refs))
    return {
        ref: owner or diff.OUTSIDE
        for ref, (_, owner) in found.items()
        if owner != name and not people_trust.outranks_set(name, owner, ref)
    }


def filter_owned(transaction: Transaction, name: str, refs: Collection[str]) -> set[str]:
    """The references of entities that are in this set."""
    found = diff.read_owners(transaction, list(refs))
    return {ref for ref, (_, owner) in found.items() if owner == name}


def count_items(transaction: Transaction, name: str) -> int:
    """The number of entities in a set."""
    return diff.read_set_row(transaction, name).item_count


class OwnedSet:
    """Guard of a set write: the member's groups must own the whole set, before and after.

    Users and groups have no owner, so such a write cannot add anyone to a group. An entity states
    its own owner, so the set's lock protects both. The member's memberships are locked, too.
    """

    def __init__(self, name: str, member: str, trust: PeopleTrust, *, takes: bool = False) -> None:
        """Raises NotAllowedError for a write that takes entities from other owners."""
        if takes:
            _refuse_write()
        self._name = name
        self._member = member
        self._trust = trust
        self._groups: frozenset[str] = frozenset()
        self._owner = ""

    def begin(self, transaction: Transaction, held: WriteLocks) -> None:
        """Check the set's owners; raises NotAllowedError if other groups own part of it."""
        self._groups = people_trust.lock_groups(transaction, held, self._member, self._trust)
        self._owner = _find_owner(transaction, self._name, self._groups)

    def end(self, transaction: Transaction) -> str:
        """Check again after the write; returns the group that allows it."""
        owner = (
            _find_owner(transaction, self._name, self._groups) or self._owner or min(self._groups)
        )
        return f"group {owner}"


async def is_owned_set(database: Database, name: str, actor: str, trust: PeopleTrust) -> bool:
    """True if groups of the actor own every entity of the set."""
    groups = await people_trust.read_groups(database, actor, trust)
    return bool(groups) and await database.one(_FOREIGN, (name, list(groups))) is None


def _find_owner(transaction: Transaction, name: str, groups: frozenset[str]) -> str:
    """One of the groups that own the set; empty for an empty set, refused if others own it."""
    if not groups or transaction.one(_FOREIGN, (name, list(groups))) is not None:
        _refuse_write()
    row = transaction.one(_OWNER, (name, list(groups)))
    return str(row[0]) if row and row[0] else ""


def _refuse_write() -> NoReturn:
    raise NotAllowedError(
        "A group of yours has to own every entity of this set, before and after; for "
        f'others it needs the permission "{TITLES[SET_WRITE]}" ({SET_WRITE}).',
        missing=(SET_WRITE,),
    )


def find_owned(transaction: Transaction) -> set[int]:
    """The entities whose owner the transaction adds, removes or moves."""
    owned: set[int] = set()
    # The references, before and after, of added, removed and moved entities.
    changed = [*revisions.list_moved_refs(transaction.touched)]
    for ids in slices(sorted(transaction.touched.get(COME_AND_GONE, ())), _OWNERS_AT_ONCE):
        changed += [ref for (ref,) in transaction.all(_REFERENCES, (ids, ids))]
    for refs in slices(changed, _OWNERS_AT_ONCE):
        owned.update(id_ for (id_,) in transaction.all(_OWNED_ENTITIES, (refs,)))
    return owned


def mark_renamed_owners(transaction: Transaction, refs: Iterable[str]) -> None:
    """Mark pushed entities of these renamed owners until the entities are written again."""
    for names in slices(refs, _OWNERS_AT_ONCE):
        ids = sorted({id_ for (id_,) in transaction.all(_PUSHED_ENTITIES, (names, f"{IMPORTED}%"))})
        for some in slices(ids, _OWNERS_AT_ONCE):
            transaction.run(_MARK_RENAMED, (some,))


_UPDATE_ENTITY = """
UPDATE entities SET set_id = ?, etag = ?, updated_by = ?, updated_at = ?, head = ?,
    body = ?, problems = ?, compliance = (compliance & ?) | ? WHERE id = ?
"""

_SET_COLUMNS = "SELECT name, item_count, revision, updated_by, updated_at FROM sets"

_ITEM_COLUMNS = (
    f"SELECT e.uid, e.ref, {DOCUMENT}, s.name, e.updated_by, e.updated_at FROM entities e "
    "LEFT JOIN sets s ON s.id = e.set_id"
)

# Each row has the revision, so one statement reads a consistent set; if no items follow, there is
# one row without a position.
_CONTENT = (
    f"SELECT s.revision, i.position, e.uid, e.ref, {DOCUMENT}, s.name, e.updated_by, e.updated_at "
    "FROM sets s LEFT JOIN set_items i ON i.set_id = s.id AND i.position > ? "
    "LEFT JOIN entities e ON e.id = i.entity_id "
    "WHERE s.name = ? AND s.item_count > 0 ORDER BY i.position"
)

_HOLDERS = """
SELECT s.value, e.ref, t.name FROM search_keys k JOIN search s ON s.key_id = k.id
JOIN entities e ON e.id = s.entity_id JOIN sets t ON t.id = e.set_id
WHERE k.key = ? AND s.value IN LIST(?)
"""

_FOREIGN: Final = f"""
SELECT 1 FROM entities e JOIN sets s ON s.id = e.set_id
WHERE s.name = ? AND ((e.compliance & {OWNER_RENAMED}) <> 0 OR NOT EXISTS (
    SELECT 1 FROM relations r
    WHERE r.source_id = e.id AND r.type = 'ownedBy' AND r.target_ref IN LIST(?)
)) LIMIT 1
"""

_OWNER: Final = """
SELECT min(r.target_ref) FROM entities e JOIN sets s ON s.id = e.set_id
JOIN relations r ON r.source_id = e.id AND r.type = 'ownedBy'
WHERE s.name = ? AND r.target_ref IN LIST(?)
"""

_REFERENCES: Final = """
SELECT ref FROM entities WHERE id IN LIST(?)
UNION SELECT ref FROM removed_entities WHERE id IN LIST(?)
"""

_MARK_RENAMED: Final = (
    f"UPDATE entities SET compliance = compliance | {OWNER_RENAMED} WHERE id IN LIST(?)"
)
