"""Revisions of sets: the changes of each push, and the content of a set at an earlier revision."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from factbook.catalog.store.diff import SetRow, WritePlan
from factbook.catalog.store.documents import DOCUMENT
from factbook.errors import ConflictError, InputError, InvalidItemsError, NotFoundError
from factbook.storage import Database, Row, Transaction


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


COLUMNS = SetRevision._fields


def record(
    transaction: Transaction,
    target: SetRow,
    plan: WritePlan,
    actor: str,
    now: int,
    restored: int | None = None,
) -> SetRow:
    """Write the next revision of a set before its plan is carried out; returns the set after it."""
    number = target.revision + 1
    changes = plan.changes
    # A write of one entity does not look at the others.
    changes["unchanged"] = target.item_count - changes["updated"] - changes["removed"]
    transaction.run(
        "INSERT INTO revisions (set_id, number, created_by, created_at, added, updated, removed, "
        "unchanged, restored) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (target.id, number, actor, now, *changes.values(), restored),
    )
    changed = [item.id for _, item in plan.updated] + [item.id for item in plan.removed]
    if changed:
        transaction.run(_KEEP_CHANGED, (number, target.id, changed))
    # An entity whose name another thing took over had a document under that reference before.
    new = {item.ref for item in plan.added}.difference(item.ref for item in plan.removed)
    new.update(item.ref for item, _ in plan.taken)
    transaction.insert(
        "revision_changes",
        ("set_id", "number", "ref"),
        [(target.id, number, ref) for ref in sorted(new)],
    )
    count = target.item_count + changes["added"] - changes["removed"]
    transaction.run(
        "UPDATE sets SET revision = ?, item_count = ?, updated_by = ?, updated_at = ? WHERE id = ?",
        (number, count, actor, now, target.id),
    )
    return target._replace(revision=number, item_count=count)


# Places, not positions: they say between which others a removed entity was, whatever becomes of
# the numbers that order the set.
_KEEP_CHANGED = f"""
INSERT INTO revision_changes (set_id, number, ref, position, document)
SELECT i.set_id, ?, e.ref, i.place, {DOCUMENT} FROM (
    SELECT set_id, entity_id, row_number() OVER (ORDER BY position) - 1 AS place
    FROM set_items WHERE set_id = ?
) i JOIN entities e ON e.id = i.entity_id WHERE i.entity_id IN LIST(?)
"""


def documents_at(transaction: Transaction, target: SetRow, number: int) -> list[str]:
    """The documents of a set after revision `number`, in their order then.

    If a later push reordered entities that it kept, their later order stays.

    Undoes the later revisions, newest first. Raises NotFoundError if a revision it needs is gone.
    """
    _check_known(transaction, target, number)
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
        content = _undone(content, [row[1:] for row in changed])
    return [document for _, document in content]


@contextmanager
def uncited(number: int) -> Iterator[None]:
    """Reword the rejection of a restore for callers that may not read the revisions it cites."""
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


def _undone(content: list[Row], changed: list[Row]) -> list[Row]:
    """The content of a set before one revision, whose changes come ordered by position."""
    refs = {ref for _, ref, _ in changed}
    kept = iter([row for row in content if row[0] not in refs])
    before: list[Row] = []
    for place, ref, document in changed:
        if document is not None:
            before += islice(kept, max(0, place - len(before)))
            before.append((ref, document))
    return [*before, *kept]


def _check_known(transaction: Transaction, target: SetRow, number: int) -> None:
    found = transaction.one(
        "SELECT count(*) FROM revisions WHERE set_id = ? AND number >= ?", (target.id, number)
    )
    if not 0 < number <= target.revision or found != (target.revision - number + 1,):
        raise NotFoundError(f"The set {target.name} has no revision {number} that is still kept.")


async def listed(database: Database, set_id: int) -> list[SetRevision]:
    """The kept revisions of a set, newest first."""
    rows = await database.all(
        f"SELECT {', '.join(COLUMNS)} FROM revisions WHERE set_id = ? ORDER BY number DESC",
        (set_id,),
    )
    return [SetRevision(*row) for row in rows]


def trim(transaction: Transaction, kept: int, before: int) -> int:
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
    delete(transaction, gone)
    return len(gone)


def trim_set(transaction: Transaction, target: SetRow, kept: int) -> None:
    """Delete all but the newest `kept` revisions of one set."""
    gone = transaction.all(
        "SELECT set_id, number FROM revisions WHERE set_id = ? AND number <= ?",
        (target.id, target.revision - kept),
    )
    delete(transaction, gone)


def delete(transaction: Transaction, gone: Iterable[tuple[int, int]]) -> None:
    """Delete revisions and their changes."""
    rows = list(gone)
    transaction.many("DELETE FROM revision_changes WHERE set_id = ? AND number = ?", rows)
    transaction.many("DELETE FROM revisions WHERE set_id = ? AND number = ?", rows)
