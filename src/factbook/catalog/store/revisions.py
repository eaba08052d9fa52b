"""History of sets: revisions and their changes, and removed entities, remembered for days.

Removed entities are remembered by external id and by reference. A move to another reference is a
removal and an addition in one write. If the external id differs from the one remembered for the
name, the entity is a different one and starts without history.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Final, Literal, NamedTuple

from factbook.auth import users
from factbook.catalog.people_trust import IMPORTED
from factbook.catalog.store.diff import SetRow, WritePlan
from factbook.catalog.store.stored_entities import DOCUMENT
from factbook.errors import ConflictError, InputError, InvalidItemsError, NotFoundError
from factbook.storage import Database, Row, Transaction
from factbook.storage.database import RestartError, Touched

ChangeKind = Literal["added", "updated", "removed"]
CHANGE_KINDS: Final[tuple[ChangeKind, ...]] = ("added", "updated", "removed")

# Limits on the revisions, and the entities of one revision, that a filtered page scans.
_REVISIONS: Final = 50
_LOOKED_THROUGH: Final = 2_000

# Sorts after every reference.
_LAST_REVISION: Final = chr(0x10FFFF)

# Topic for moved entities, together with the previous reference.
_MOVED: Final = "moved entities"

# Never occurs in a reference.
_ASIDE: Final = "#"
_BEHIND_ASIDE: Final = chr(ord(_ASIDE) + 1)
# Never occurs in an external id.
_IN_SET: Final = "\t"
_TABLES: Final = ("removed_entities", "entities")


class SetRevision(NamedTuple):
    """A revision of a set; `restored` is the number of the revision that it restored."""

    number: int
    created_by: str
    created_at: int
    added: int
    updated: int
    removed: int
    unchanged: int
    restored: int | None


REVISION_COLUMNS = SetRevision._fields


def record_revision(
    transaction: Transaction,
    target: SetRow,
    plan: WritePlan,
    actor: str,
    now: int,
    restored: int | None = None,
) -> SetRow:
    """Write the next revision of a set before its plan is applied; returns the new set."""
    number = target.revision + 1
    changes = plan.changes
    # A write of one entity does not read the others.
    changes["unchanged"] = target.item_count - changes["updated"] - changes["removed"]
    transaction.run(
        "INSERT INTO revisions (set_id, number, created_by, created_at, added, updated, removed, "
        "unchanged, restored) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (target.id, number, actor, now, *changes.values(), restored),
    )
    changed = [item.id for _, item in plan.updated] + [item.id for item in plan.removed]
    if changed:
        transaction.run(_KEEP_CHANGED, (number, target.id, changed))
    # A name taken over by a different entity already had a document before.
    new = {item.ref for item in plan.added}.difference(item.ref for item in plan.removed)
    new.update(item.ref for item, _ in plan.taken)
    if new:
        rows = [(target.id, number, ref) for ref in sorted(new)]
        transaction.insert("revision_changes", ("set_id", "number", "ref"), rows)
    count = target.item_count + changes["added"] - changes["removed"]
    transaction.run(
        "UPDATE sets SET revision = ?, item_count = ?, updated_by = ?, updated_at = ? WHERE id = ?",
        (number, count, actor, now, target.id),
    )
    return target._replace(revision=number, item_count=count)


def read_documents_at(transaction: Transaction, target: SetRow, number: int) -> list[str]:
    """The documents of a set after revision `number`, in their order then.

    If a later push reordered entities that it kept, their later order stays.

    Undoes the later revisions, newest first. Raises NotFoundError if a revision it needs is gone.
    """
    later = transaction.one(
        "SELECT count(*) FROM revisions WHERE set_id = ? AND number >= ?", (target.id, number)
    )
    if not 0 < number <= target.revision or later != (target.revision - number + 1,):
        raise NotFoundError(f"The set {target.name} has no revision {number} that is still kept.")
    content = transaction.all(
        f"SELECT e.ref, {DOCUMENT} FROM set_items i "
        "JOIN entities e ON e.id = i.entity_id WHERE i.set_id = ? ORDER BY i.position",
        (target.id,),
    )
    changes = transaction.all(
        "SELECT number, position, ref, document FROM revision_changes "
        "WHERE set_id = ? AND number > ? ORDER BY number DESC, position",
        (target.id, number),
    )
    for _, changed in groupby(changes, itemgetter(0)):
        content = _undo_changes(content, [row[1:] for row in changed])
    return [document for _, document in content]


@contextmanager
def reword_rejection(number: int) -> Iterator[None]:
    """Reword a restore's rejection for callers that may not read the revisions it cites."""
    try:
        yield
    except InvalidItemsError as error:
        text = f"Revision {number} breaks today's rules in {len(error.details['problems'])} places"
        raise error.unless_read(InputError(f"{text}; nothing was written.")) from None
    except ConflictError as error:
        if conflicts := error.details.get("conflicts"):
            text = f"Other owners hold {len(conflicts)} entities of revision {number}"
            error.unless_read(ConflictError(f"{text}; nothing was written."))
        raise


def _undo_changes(content: list[Row], changed: list[Row]) -> list[Row]:
    """The content of a set before one revision; `changed` is ordered by position."""
    refs = {ref for _, ref, _ in changed}
    kept = iter([row for row in content if row[0] not in refs])
    before: list[Row] = []
    for place, ref, document in changed:
        if document is not None:
            before += islice(kept, max(0, place - len(before)))
            before.append((ref, document))
    return [*before, *kept]


async def list_revisions(database: Database, set_id: int) -> list[SetRevision]:
    """The kept revisions of a set, newest first."""
    rows = await database.all(
        f"SELECT {', '.join(REVISION_COLUMNS)} FROM revisions "
        "WHERE set_id = ? ORDER BY number DESC",
        (set_id,),
    )
    return [SetRevision(*row) for row in rows]


def trim_revisions(transaction: Transaction, kept: int, before: int) -> int:
    """Delete all but the newest `kept` revisions, and those replaced before the time `before`.

    The newest revision of a set always stays: a push that empties the set today can still be
    undone.
    """
    gone = transaction.all(
        "SELECT r.set_id, r.number FROM revisions r JOIN sets s ON s.id = r.set_id "
        "LEFT JOIN revisions n ON n.set_id = r.set_id AND n.number = r.number + 1 "
        "WHERE n.created_at < ? OR r.number <= s.revision - ?",
        (before, kept),
    )
    delete_revisions(transaction, gone)
    return len(gone)


def trim_revisions_of_set(transaction: Transaction, target: SetRow, kept: int) -> None:
    """Delete all but the newest `kept` revisions of one set."""
    if target.revision <= kept:
        return
    gone = transaction.all(
        "SELECT set_id, number FROM revisions WHERE set_id = ? AND number <= ?",
        (target.id, target.revision - kept),
    )
    delete_revisions(transaction, gone)


def delete_revisions(transaction: Transaction, gone: Iterable[tuple[int, int]]) -> None:
    """Delete revisions and their changes."""
    rows = list(gone)
    transaction.many("DELETE FROM revision_changes WHERE set_id = ? AND number = ?", rows)
    transaction.many("DELETE FROM revisions WHERE set_id = ? AND number = ?", rows)


class Changed(NamedTuple):
    """An entity changed by a revision: its document before and after; None if it did not exist."""

    ref: str
    before: str | None
    after: str | None

    @property
    def kind(self) -> ChangeKind:
        """Kind of the change."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "updated"


class ChangeFilter(NamedTuple):
    """A filter of the entities changed by a revision: by kind of change and a part of the name."""

    kind: ChangeKind | None = None
    text: str = ""

    def names(self, ref: str) -> bool:
        """Return true if the text is in the reference, with or without the default namespace."""
        return self.text in ref or self.text in ref.replace(":default/", ":", 1)


EVERY_CHANGE: Final = ChangeFilter()


class RevisionChanges(NamedTuple):
    """A page of entities changed by a revision, by reference; `more` is the next page's start.

    A filtered page scans a bounded number of changes, so it may be empty.
    """

    revision: SetRevision
    items: list[Changed]
    more: str | None


class PastPlace(NamedTuple):
    """Position at the end of a page of changes since a time."""

    created_at: int
    set_id: int
    number: int
    ref: str


class Past(NamedTuple):
    """An entity changed by a revision of a set, and the user who pushed it."""

    place: PastPlace
    set: str
    by: str
    changed: Changed


class PastChanges(NamedTuple):
    """A page of changes, oldest first; `more` is None on the last page."""

    changes: list[Past]
    more: PastPlace | None


async def page_changes(
    database: Database,
    name: str,
    number: int,
    after: str,
    limit: int,
    wanted: ChangeFilter = EVERY_CHANGE,
) -> RevisionChanges:
    """Up to `limit` entities changed by revision `number`, after the reference `after`.

    Raises NotFoundError for a set that never existed and for a revision that is no longer kept.
    """
    found = await database.one(_REVISION_CHANGES, (name, number))
    if found is None:
        raise NotFoundError(f"The set {name} has no revision {number} that is still kept.")
    set_id, *revision = found
    at_once = limit if wanted == EVERY_CHANGE else _LOOKED_THROUGH
    rows = await database.all(_CHANGED, (set_id, number, after, at_once + 1))
    asked = {ref: before for ref, before in rows[:at_once] if wanted.names(ref)}
    if wanted.kind is not None:
        is_new = wanted.kind == "added"
        asked = {ref: text for ref, text in asked.items() if (text is None) == is_new}
    items = [
        one
        for one in await _read_changed(database, set_id, number, asked)
        if wanted.kind in (None, one.kind)
    ]
    more = rows[at_once - 1][0] if len(rows) > at_once else None
    if len(items) > limit:
        more = items[limit - 1].ref
    return RevisionChanges(SetRevision(*revision), items[:limit], more)


async def list_changes_since(
    database: Database, after: PastPlace, kind: str | None, limit: int
) -> PastChanges:
    """Up to `limit` changes after a position, from the revisions that are kept, ordered by time.

    A page scans a bounded number of revisions, so it may hold fewer changes.
    """
    revisions = await database.all(_SINCE, (after.created_at, *after[:3], _REVISIONS))
    found: list[Past] = []
    narrowed = _CHANGED
    kinds: tuple[str, ...] = ()
    if kind is not None:
        narrowed = _CHANGED.replace(" ORDER", " AND ref >= ? AND ref < ? ORDER")
        kinds = (f"{kind}:", f"{kind};")
    for created_at, set_id, number, name, by in revisions:
        place = PastPlace(created_at, set_id, number, "")
        behind = after.ref if place[:3] == after[:3] else ""
        most = limit - len(found) + 1
        rows = await database.all(narrowed, (set_id, number, behind, *kinds, most))
        before: dict[str, str | None] = dict(rows[: most - 1])
        found += [
            Past(place._replace(ref=one.ref), name, by, one)
            for one in await _read_changed(database, set_id, number, before)
        ]
        if len(rows) == most:
            return PastChanges(found, found[-1].place if found else after)
    if len(revisions) < _REVISIONS:
        return PastChanges(found, None)
    created_at, set_id, number, *_ = revisions[-1]
    return PastChanges(found, PastPlace(created_at, set_id, number, _LAST_REVISION))


async def has_recorded_change(database: Database, ref: str, start: int, end: int) -> bool:
    """Return true if a kept revision changed the entity after `start` and no later than `end`."""
    return await database.one(_RECORDED, (start, end, ref)) is not None


async def _read_changed(
    database: Database, set_id: int, number: int, before: dict[str, str | None]
) -> list[Changed]:
    """Compare the entities changed by a revision with their documents before it."""
    # An entity's state after a revision is its state before the next revision that changed it.
    later = await database.all(_LATER, (set_id, number, list(before)))
    rest = [ref for ref in before if ref not in {ref for ref, _ in later}]
    now: dict[str, str] = dict(await database.all(_CURRENT, (set_id, rest)))
    since = {**now, **dict(later)}
    return [Changed(ref, document, since.get(ref)) for ref, document in before.items()]


class Holder(NamedTuple):
    """An entity in the catalog, its set, and its relation to the reference; empty for none."""

    ref: str
    set: str
    relation: str


class ErasedEntities(NamedTuple):
    """Ids of removed entities, documents they had, and the number of deleted `changes`."""

    ids: list[int]
    documents: list[str]
    changes: int


def remember_removed(
    transaction: Transaction,
    gone: Iterable[tuple[str, int, str]],
    keys: Mapping[int, str],
    now: int,
) -> None:
    """Remember entities, given by reference, id and uid; `keys` are their memory keys by id."""
    columns = ("ref", "id", "uid", "removed_at", "external_id")
    rows = [(ref, id_, uid, now, keys.get(id_) or None) for ref, id_, uid in gone]
    transaction.insert("removed_entities", columns, rows)


def make_memory_key(set_name: str | None, external_id: str) -> str:
    """The key under which an external id is remembered; empty without one.

    Ids from importers are known in all sets, pushed ids only in their own set: otherwise a pusher
    could claim an entity that another set removed.
    """
    if not external_id or set_name is None:
        return ""
    if set_name.startswith(IMPORTED):
        return external_id
    return f"{external_id}{_IN_SET}{set_name}"


def recall_removed(
    transaction: Transaction, added: Mapping[str, str]
) -> dict[str, tuple[int, str]]:
    """Ids and uids of removed entities that are added again; also forgets these.

    `added` maps references to memory keys. A remembered entity of the same name with a different
    external id is set aside: its name now belongs to the new entity.
    """
    keys = sorted({key for key in added.values() if key})
    # The latest comes last and wins.
    known = transaction.all(
        f"{_READ_REMOVED} external_id IN LIST(?) ORDER BY removed_at, id", (keys,)
    )
    by_key = {row[3]: row for row in known}
    namesakes = {
        row[0]: row for row in transaction.all(f"{_READ_REMOVED} ref IN LIST(?)", (list(added),))
    }
    found = {ref: by_key.pop(key) for ref, key in added.items() if key in by_key}
    for row in found.values():
        namesakes.pop(row[0], None)
    for ref in namesakes.keys() - found.keys():
        if _may_be_same(namesakes[ref][3], added[ref]):
            found[ref] = namesakes.pop(ref)
    given = [row[0] for row in found.values()]
    transaction.run("DELETE FROM removed_entities WHERE ref IN LIST(?)", (given,))
    _vacate_names(transaction, {row[0]: row[1] for ref, row in found.items() if row[0] != ref})
    ids = {ref: row[1] for ref, row in namesakes.items()}
    aside = [(make_aside_ref(ref, id_), ref) for ref, id_ in ids.items()]
    transaction.many("UPDATE removed_entities SET ref = ? WHERE ref = ?", aside)
    _vacate_names(transaction, ids)
    return {ref: (row[1], row[2]) for ref, row in found.items()}


def forget_removed(transaction: Transaction, before: int) -> list[int]:
    """Forget entities removed before that time; returns their ids."""
    gone = transaction.all(
        "DELETE FROM removed_entities WHERE removed_at < ? RETURNING id, ref, external_id",
        (before,),
    )
    # Any later entity with one of these names is a different one.
    _vacate_names(transaction, {ref: id_ for id_, ref, key in gone if key and _ASIDE not in ref})
    return [row[0] for row in gone]


def _may_be_same(known: str | None, key: str) -> bool:
    """True unless both sides have external ids that differ."""
    return not known or not key or known.partition(_IN_SET)[0] == key.partition(_IN_SET)[0]


def make_aside_ref(ref: str, id_: int) -> str:
    """A substitute reference for an entity that lost its reference to a different one."""
    return f"{ref}{_ASIDE}{id_}"


def _vacate_names(transaction: Transaction, left: Mapping[str, int]) -> None:
    """Record that entities lost these names, and unlink accounts of the same names."""
    for ref, id_ in left.items():
        transaction.touch((_MOVED, ref), (id_,))
    if people := [ref for ref in left if ref.startswith(users.PREFIX)]:
        users.remove_proofs(transaction, people)


def check_removed(transaction: Transaction, refs: list[str]) -> None:
    """Restart if other writes added and removed one of these entities since it was planned.

    Its remembered id must be used then. From now on no other write can add the entity.
    """
    rows = "SELECT 1 FROM removed_entities WHERE ref IN LIST(?) LIMIT 1"
    if remembers_removed(transaction) and transaction.one(rows, (refs,)) is not None:
        raise RestartError


def list_moved_refs(touched: Touched) -> dict[str, int]:
    """The ids of entities moved in a transaction, by previous reference."""
    return {topic[1]: id_ for topic, ids in touched.items() if topic[0] == _MOVED for id_ in ids}


def read_removed_refs(transaction: Transaction, ids: Iterable[int]) -> dict[int, str]:
    """The references of these entities, in the catalog or remembered, by id."""
    wanted = sorted(ids)
    sql = (f"SELECT id, ref FROM {table} WHERE id IN LIST(?)" for table in _TABLES)
    return dict(chain.from_iterable(transaction.all(each, (wanted,)) for each in sql))


def find_ref_holders(transaction: Transaction, refs: Collection[str]) -> list[Holder]:
    """Entities in the catalog that still refer to these references, those with them first."""
    given = sorted(refs)
    return [
        Holder(ref, set_name, relation)
        for sql in (_THEMSELVES, _RELATED)
        for ref, set_name, relation in transaction.all(sql, (given,))
    ]


def erase_removed(transaction: Transaction, refs: Collection[str]) -> ErasedEntities:
    """Delete the memory of removed entities, and their documents in earlier revisions."""
    given = sorted(refs)
    found = transaction.all(_DOCUMENTS, (given,))
    transaction.many(
        "DELETE FROM revision_changes WHERE set_id = ? AND number = ? AND ref = ?",
        [row[:3] for row in found],
    )
    ids = [
        id_
        for ref in given
        for (id_,) in transaction.all(_ERASE, (ref, f"{ref}{_ASIDE}", f"{ref}{_BEHIND_ASIDE}"))
    ]
    documents = [row[3] for row in found if row[3]]
    return ErasedEntities(ids, documents, len(found))


def remembers_removed(transaction: Transaction) -> bool:
    """True if any removed entity is remembered."""
    return transaction.one("SELECT 1 FROM removed_entities LIMIT 1") is not None


# Row numbers instead of positions: they keep a removed entity's place among the others even if the
# set is renumbered.
_KEEP_CHANGED = f"""
INSERT INTO revision_changes (set_id, number, ref, position, document)
SELECT i.set_id, ?, e.ref, i.place, {DOCUMENT} FROM (
    SELECT set_id, entity_id, row_number() OVER (ORDER BY position) - 1 AS place
    FROM set_items WHERE set_id = ?
) i JOIN entities e ON e.id = i.entity_id WHERE i.entity_id IN LIST(?)
"""

_REVISION_CHANGES = f"""
SELECT r.set_id, {", ".join(f"r.{column}" for column in REVISION_COLUMNS)}
FROM sets s JOIN revisions r ON r.set_id = s.id WHERE s.name = ? AND r.number = ?
"""

_SINCE = """
SELECT r.created_at, r.set_id, r.number, s.name, r.created_by
FROM revisions r JOIN sets s ON s.id = r.set_id
WHERE r.created_at >= ? AND (r.created_at, r.set_id, r.number) >= (?, ?, ?)
ORDER BY r.created_at, r.set_id, r.number LIMIT ?
"""

_RECORDED = """
SELECT 1 FROM revisions r JOIN revision_changes c ON c.set_id = r.set_id AND c.number = r.number
WHERE r.created_at > ? AND r.created_at <= ? AND c.ref = ? LIMIT 1
"""

_CHANGED = """
SELECT ref, document FROM revision_changes
WHERE set_id = ? AND number = ? AND ref > ? ORDER BY ref LIMIT ?
"""

# Looks up only these references in each later revision, however many others it changed. Rows come
# newest first, so the earliest wins.
_LATER = """
SELECT c.ref, c.document FROM revisions r CROSS JOIN revision_changes c
WHERE r.set_id = ? AND r.number > ? AND c.set_id = r.set_id AND c.number = r.number
    AND c.ref IN LIST(?)
ORDER BY c.number DESC
"""

_CURRENT = f"SELECT e.ref, {DOCUMENT} FROM entities e WHERE e.set_id = ? AND e.ref IN LIST(?)"

_ERASE: Final = "DELETE FROM removed_entities WHERE ref = ? OR ref BETWEEN ? AND ? RETURNING id"

_READ_REMOVED: Final = "SELECT ref, id, uid, external_id FROM removed_entities WHERE"

_THEMSELVES = """
SELECT e.ref, coalesce(s.name, ''), '' FROM entities e LEFT JOIN sets s ON s.id = e.set_id
WHERE e.ref IN LIST(?)
"""

_RELATED = """
SELECT e.ref, coalesce(s.name, ''), r.type FROM relations r JOIN entities e ON e.id = r.source_id
LEFT JOIN sets s ON s.id = e.set_id WHERE r.target_ref IN LIST(?) ORDER BY e.ref, r.type LIMIT 100
"""

# Looked up by revision, as changes have no index by reference.
_DOCUMENTS = """
SELECT c.set_id, c.number, c.ref, c.document FROM revisions r CROSS JOIN revision_changes c
WHERE c.set_id = r.set_id AND c.number = r.number AND c.ref IN LIST(?)
"""
