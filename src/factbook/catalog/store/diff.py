"""Plan of a write: the difference to the stored entities, its reach, and its events."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from factbook.auth import tokens
from factbook.auth.tokens import Narrowing
from factbook.catalog import people_trust, ref
from factbook.catalog.piecewise import slices
from factbook.catalog.sets import Prepared
from factbook.catalog.store import conditions, locks
from factbook.catalog.store.index_rows import PORTION, Derived
from factbook.catalog.store.locks import WriteGuard
from factbook.catalog.store.stored_entities import DOCUMENT
from factbook.errors import ConflictError, PreconditionFailedError
from factbook.events.store import Change, EventRow, make_entities_row, make_set_row
from factbook.schemas.catalog import Difference
from factbook.storage import Transaction

OUTSIDE = "no set"  # owner of an entity pushed outside any set
NOT_SHOWN = "another owner"  # for callers that may not see the owner


class SetRow(NamedTuple):
    """A stored set; revision 0 means that the set does not exist yet."""

    id: int
    name: str
    revision: int
    item_count: int


class Existing(NamedTuple):
    """A stored entity without its document."""

    ref: str
    id: int
    uid: str
    etag: str
    updated_by: str
    updated_at: int


_COLUMNS = ", ".join(f"e.{name}" for name in Existing._fields)


class Guards(NamedTuple):
    """The conditions under which a push is rejected."""

    if_match: str | None = None  # the required current revision, as an entity tag
    max_removals: str | None = None  # a number, or a percentage of the set such as `10%`
    take: bool = False  # take entities from other sets instead of refusing
    narrowing: Narrowing | None = None  # of the token that pushes
    owned: WriteGuard | None = None  # requires that a member's groups own the set

    def most_removals(self, count: int) -> int | None:
        """Largest number of `count` entities to remove; None for any number."""
        text = self.max_removals
        if text is None or not text.endswith("%"):
            return None if text is None else int(text)
        return int(count * float(text[:-1]) / 100)


class WritePlan(Struct):
    """Entities that a write adds, updates, removes and leaves unchanged.

    `set` is None for entities outside any set. `order` holds every reference of the set in its new
    order, or None if the write only appends and removes. `losers` are the lock names of the owners
    from whom entities are taken.
    """

    set: SetRow | None
    added: list[Prepared] = []
    taken: list[tuple[Prepared, Existing]] = []
    updated: list[tuple[Prepared, Existing]] = []
    removed: list[Existing] = []
    unchanged: list[Existing] = []
    order: list[str] | None = None
    losers: Collection[str] = ()

    @property
    def changes(self) -> dict[str, int]:
        """The counts reported for a push; an entity taken from another set counts as added."""
        return {
            "added": len(self.added) + len(self.taken),
            "updated": len(self.updated),
            "removed": len(self.removed),
            "unchanged": len(self.unchanged),
        }

    @property
    def is_empty(self) -> bool:
        """True if nothing changes."""
        return not (self.added or self.taken or self.updated or self.removed)

    def difference(self) -> list[Difference]:
        """Each entity that changes, with the kind of change."""
        groups = (
            ("added", [item.ref for item in self.added]),
            ("added", [item.ref for item, _ in self.taken]),
            ("updated", [item.ref for item, _ in self.updated]),
            ("removed", [item.ref for item in self.removed]),
        )
        return [Difference(ref, change) for change, refs in groups for ref in refs]


def read_set_row(transaction: Transaction, name: str) -> SetRow:
    """The set with this name; revision 0 if there is none."""
    row = transaction.one("SELECT id, name, revision, item_count FROM sets WHERE name = ?", (name,))
    return SetRow(*row) if row else SetRow(0, name, 0, 0)


def plan_replacement(
    transaction: Transaction,
    name: str,
    wanted: Sequence[Prepared],
    guards: Guards,
) -> WritePlan:
    """The plan that makes `wanted` the whole content of a set.

    Raises PreconditionFailedError, ConflictError or NotAllowedError if a guard or another owner
    forbids it.
    """
    tokens.check_narrowed_sets(guards.narrowing, [name])
    target = read_set_row(transaction, name)
    _check_revision(target, guards.if_match)
    current = _read_members(transaction, target.id)
    plan = WritePlan(target)
    _sort_changes(transaction, plan, wanted, current, guards)
    refs = [item.ref for item in wanted]
    kept = set(refs).difference(item.ref for item in plan.removed)
    plan.removed = [item for ref, item in current.items() if ref not in kept]
    tokens.check_narrowed_refs(guards.narrowing, [item.ref for item in plan.removed])
    _check_removals(plan, guards)
    remaining = [ref for ref in current if ref in kept]
    only_appends = refs[: len(remaining)] == remaining
    # New entities are appended before the taken ones, which may not be the pushed order.
    if (plan.added and plan.taken) or not only_appends:
        plan.order = refs
    return plan


def plan_addition(
    transaction: Transaction,
    name: str | None,
    items: Sequence[Prepared],
    guards: Guards,
    gone: Collection[str] = (),
) -> WritePlan:
    """The plan that adds or updates entities in a set, or outside any set when `name` is None.

    It also removes entities with the references in `gone`.
    """
    tokens.check_narrowed_sets(guards.narrowing, [name])
    target = read_set_row(transaction, name) if name is not None else None
    if target is not None:
        _check_revision(target, guards.if_match)
    plan = WritePlan(target)
    set_id = target.id if target else None
    owned = "set_id = ?" if set_id is not None else "set_id IS NULL"
    refs = [*(item.ref for item in items), *gone]
    rows = transaction.all(
        f"SELECT {_COLUMNS} FROM entities e WHERE e.ref IN LIST(?) AND {owned}",
        (refs, set_id) if set_id is not None else (refs,),
    )
    current = {row[0]: Existing(*row) for row in rows}
    _sort_changes(transaction, plan, items, current, guards)
    plan.removed += [current[ref] for ref in gone if ref in current]
    tokens.check_narrowed_refs(guards.narrowing, [item.ref for item in plan.removed])
    return plan


def plan_removal(
    transaction: Transaction, uid: str, narrowing: Narrowing | None = None
) -> WritePlan | None:
    """The plan that removes one entity, in a set or not; None if there is no such entity.

    Raises NotAllowedError if the token's narrowing excludes the entity.
    """
    row = transaction.one(
        f"SELECT {_COLUMNS}, s.name FROM entities e "
        "LEFT JOIN sets s ON s.id = e.set_id WHERE e.uid = ?",
        (uid,),
    )
    if row is None:
        return None
    name = row[-1]
    tokens.check_narrowed_sets(narrowing, [name])
    tokens.check_narrowed_refs(narrowing, [row[0]])
    target = read_set_row(transaction, name) if name is not None else None
    return WritePlan(target, removed=[Existing(*row[:-1])])


def _read_members(transaction: Transaction, set_id: int) -> dict[str, Existing]:
    rows = transaction.all(
        f"SELECT {_COLUMNS} FROM set_items i "
        "JOIN entities e ON e.id = i.entity_id WHERE i.set_id = ? ORDER BY i.position",
        (set_id,),
    )
    return {row[0]: Existing(*row) for row in rows}


def _sort_changes(
    transaction: Transaction,
    plan: WritePlan,
    wanted: Iterable[Prepared],
    current: dict[str, Existing],
    guards: Guards,
) -> None:
    new = []
    for item in wanted:
        existing = current.get(item.ref)
        if existing is None:
            new.append(item)
        elif existing.etag == item.etag:
            plan.unchanged.append(existing)
        else:
            plan.updated.append((item, existing))
    if others := _read_others(transaction, plan.updated):
        plan.removed = [existing for _, existing in others]
        plan.added = [item for item, _ in others]
        replaced = {existing.id for _, existing in others}
        plan.updated = [pair for pair in plan.updated if pair[1].id not in replaced]
    changed = [*new, *plan.added, *(item for item, _ in plan.updated)]
    tokens.check_narrowed_refs(guards.narrowing, [item.ref for item in changed])
    # Read in one statement, as other owners may write at the same time.
    held = read_owners(transaction, [item.ref for item in new])
    name = plan.set.name if plan.set else None
    kept = [
        ref for ref, (_, owner) in held.items() if not people_trust.outranks_set(name, owner, ref)
    ]
    if kept and not guards.take:
        owners = [(ref, held[ref][1] or OUTSIDE) for ref in sorted(kept)]
        unread = _make_held_error([(ref, NOT_SHOWN) for ref, _ in owners])
        raise _make_held_error(owners).unless_read(unread)
    tokens.check_narrowed_sets(guards.narrowing, [name for _, name in held.values()])
    plan.added += [item for item in new if item.ref not in held]
    plan.taken = [(item, held[item.ref][0]) for item in new if item.ref in held]
    plan.losers = {locks.owner(name, ref) for ref, (_, name) in held.items()}


def _read_others(
    transaction: Transaction, updated: Sequence[tuple[Prepared, Existing]]
) -> list[tuple[Prepared, Existing]]:
    """Pairs with two different external ids: the name now belongs to another entity."""
    wanted = {}
    for item, existing in updated:
        key, external_id = ref.find_external_id(item.document)
        if external_id:
            wanted[existing.id] = (key, external_id)
    if not wanted:
        return []
    # Almost all ids are unchanged, which the search index shows without reading documents.
    keys = {f"metadata.annotations.{key}".lower() for key, _ in wanted.values()}
    values = {conditions.make_search_text(external_id) for _, external_id in wanted.values()}
    same = {
        id_
        for id_, value in transaction.all(_HOLDERS, (sorted(keys), sorted(values)))
        if id_ in wanted and value == conditions.make_search_text(wanted[id_][1])
    }
    rows = transaction.all(_DOCUMENTS, (sorted(wanted.keys() - same),))
    stored = {id_: ref.find_external_id(document)[1] for id_, document in rows}
    return [
        (item, existing)
        for item, existing in updated
        if stored.get(existing.id) not in (None, "", wanted.get(existing.id, ("", ""))[1])
    ]


def read_owners(
    transaction: Transaction, refs: list[str]
) -> dict[str, tuple[Existing, str | None]]:
    """The entities with these references, each with the name of its set."""
    if not refs:
        return {}
    rows = transaction.all(
        f"SELECT {_COLUMNS}, s.name FROM entities e LEFT JOIN sets s ON s.id = e.set_id "
        "WHERE e.ref IN LIST(?)",
        (refs,),
    )
    return {row[0]: (Existing(*row[:-1]), row[-1]) for row in rows}


def _make_held_error(owners: Sequence[tuple[str, str]]) -> ConflictError:
    named = ", ".join(f"{ref} (held by {owner})" for ref, owner in owners[:3])
    more = f" and {len(owners) - 3} more" if len(owners) > 3 else ""
    return ConflictError(
        f"Nothing was written, other owners hold {named}{more}. "
        "Push with onConflict=take to move them here.",
        conflicts=[{"entityRef": ref, "owner": owner} for ref, owner in owners],
    )


def _check_revision(target: SetRow, if_match: str | None) -> None:
    if if_match is None or (if_match == "*" and target.revision):
        return
    tags = [tag.strip().removeprefix("W/").strip('"') for tag in if_match.split(",")]
    if str(target.revision) not in tags:
        raise PreconditionFailedError(
            f"The set {target.name} is at revision {target.revision}, "
            "not at the one that If-Match names; nothing was written.",
            revision=target.revision,
        )


def _check_removals(plan: WritePlan, guards: Guards) -> None:
    most = guards.most_removals(plan.set.item_count) if plan.set else None
    if plan.set and most is not None and len(plan.removed) > most:
        raise ConflictError(
            f"This push would remove {len(plan.removed)} of {plan.set.item_count} entities; "
            f"maxRemovals allows {most}. Nothing was written.",
            removals=len(plan.removed),
        )


def count_reached(transaction: Transaction, plan: WritePlan, most: int) -> int:
    """The number of other entities that added and updated ones name, or that name added ones.

    Counting stops soon after `most`. Targets count even if they do not exist.
    """
    items = [*plan.added, *(item for item, _ in plan.updated)]
    own = {item.ref for item in items}
    named: set[str] = set()
    for item in items:
        named.update(target for _, target in Derived.of(item.ref, item.document).edges)
        if len(named) > most + len(own):
            break
    added = [item.ref for item in plan.added]
    [(naming,)] = transaction.all(_NAMING, (added, most + 1))
    return len(named - own) + int(naming)


def make_plan_events(
    target: SetRow | None, plan: WritePlan, by: str, restored: int | None
) -> Iterator[EventRow]:
    """Events for the set after the plan, if there is one, and for every entity that changed."""
    if target is not None:
        yield _make_set_event(target, plan, by, restored)
    name, revision = (target.name, target.revision) if target is not None else (None, 0)
    added = [item.ref for item in plan.added]
    removed = [item.ref for item in plan.removed]
    reused = set(added).intersection(removed)
    groups: tuple[tuple[Change, list[str]], ...] = (
        # The event of a name's new holder follows the event of the old one.
        ("removed", sorted(reused)),
        ("added", added),
        ("updated", [item.ref for item, _ in (*plan.updated, *plan.taken)]),
        ("removed", [ref for ref in removed if ref not in reused]),
    )
    for change, refs in groups:
        for some in slices(refs, PORTION):
            yield make_entities_row(name, revision, by, {change: some})


def make_loss_event(target: SetRow, lost: Sequence[Existing], by: str) -> EventRow:
    """An event for a set that has lost entities to another one."""
    return _make_set_event(target, WritePlan(target, removed=list(lost)), by, None)


def _make_set_event(target: SetRow, plan: WritePlan, by: str, restored: int | None) -> EventRow:
    changes = plan.changes
    del changes["unchanged"]
    return make_set_row(
        target.name, target.revision, by, target.item_count, changes, restored=restored
    )


_HOLDERS = """
SELECT s.entity_id, s.value FROM search s JOIN search_keys k ON k.id = s.key_id
WHERE k.key IN LIST(?) AND s.value IN LIST(?)
"""

_DOCUMENTS = f"SELECT e.id, {DOCUMENT} FROM entities e WHERE e.id IN LIST(?)"

_NAMING: Final = """
SELECT count(*) FROM (
    SELECT DISTINCT source_id FROM relations WHERE target_ref IN LIST(?) LIMIT ?
) AS naming
"""
