"""The store of checks: published documents, drafts, and publications under way.

Readers see the published version of a check. A version that was published is pending until every
entity is evaluated (checks/publication.py), in a slot of its own.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from factbook.checks import (
    change_events,
    definition_lock,
    dependencies,
    exemption_store,
    scorecard_store,
    slots,
    stored_check,
)
from factbook.checks.stored_check import StoredCheck
from factbook.datasources.definitions import UNPUBLISHED, DefinitionVersion, Document, same
from factbook.errors import ConflictError, NotFoundError
from factbook.storage import Database, Transaction, counters

LOCK: Final = definition_lock.LOCK
REVISION: Final = definition_lock.REVISION
MOST: Final = 2_000

raise_revision = definition_lock.raise_revision


async def revision(database: Database) -> int:
    """A number that increases with every change of a check or of its publication."""
    return await counters.value(database, REVISION)


async def everything(database: Database) -> list[StoredCheck]:
    """Every check, by its id."""
    return [stored_check.read(row) for row in await database.all(_EVERY)]


async def one(database: Database, check_id: str) -> StoredCheck | None:
    """The check with this id."""
    row = await database.one(_ONE, (check_id,))
    return stored_check.read(row) if row else None


async def versions(database: Database, check_id: str) -> list[DefinitionVersion]:
    """The published versions, newest first."""
    found = [DefinitionVersion(*row) for row in await database.all(_VERSIONS, (check_id,))]
    return sorted(found, key=lambda one: stored_check.numbers(one.version), reverse=True)


async def version(database: Database, check_id: str, number: str) -> dict[str, Any] | None:
    """The document of a published version."""
    row = await database.one(_VERSION, (check_id, number))
    return None if row is None else msgspec.json.decode(row[0])


def read(transaction: Transaction, check_id: str) -> StoredCheck | None:
    """The check with this id, locked against changes until the end of the transaction."""
    transaction.lock(f"check {check_id}")
    row = transaction.one(_ONE, (check_id,))
    return stored_check.read(row) if row else None


def all_within(transaction: Transaction) -> list[StoredCheck]:
    """Every check, by its id, within a transaction."""
    return [stored_check.read(row) for row in transaction.all(_EVERY)]


def create(transaction: Transaction, document: Document, actor: str, now: int) -> StoredCheck:
    """Store a new check as a draft; raises ConflictError if its id is taken."""
    check_id = document["id"]
    if read(transaction, check_id) is not None:
        raise ConflictError(f"There is already a check {check_id}; PUT replaces it.")
    [count] = transaction.one("SELECT count(*) FROM checks") or (0,)
    if count >= MOST:
        raise ConflictError(f"There are {MOST} checks already; delete one first.")
    _verify(transaction, document)
    transaction.run(_CREATE, (check_id, _json(document), UNPUBLISHED, now, actor, now, actor))
    return _again(transaction, check_id)


def put(transaction: Transaction, document: Document, actor: str, now: int) -> StoredCheck:
    """Make the document the draft of its check; an equal document changes nothing.

    A document equal to the published one discards the draft. A check that is missing is created.
    Raises InvalidItemsError if the check reads one that does not exist, or itself in the end.
    """
    before = read(transaction, document["id"])
    if before is None:
        return create(transaction, document, actor, now)
    newest = before.pending or before.published
    if same(document, before.draft or newest):
        return before
    _verify(transaction, document)
    draft = None if same(document, newest) else _json(document)
    transaction.run(_REPLACE, (draft, now, actor, before.id))
    return _again(transaction, before.id)


def publish(transaction: Transaction, check_id: str, actor: str, now: int) -> StoredCheck:
    """Publish the draft under the next version; without a draft nothing changes.

    If it changes what is evaluated, the version is pending until every entity is; so are the checks
    that read the state of this one, all of which come into effect together.
    """
    definition_lock.take(transaction)
    before = _existing(transaction, check_id)
    if before.draft is None:
        return before
    _verify(transaction, before.draft)
    newest = before.pending or before.published
    is_text = newest is not None and stored_check.is_text(newest, before.draft)
    number, text = before.next_version(is_text=is_text), _json(before.draft)
    transaction.run(_ADD_VERSION, (check_id, number, text, now, actor))
    if is_text and before.pending is None:
        transaction.run(_PUBLISH_TEXT, (text, number, now, actor, check_id))
        change_events.tell_published(transaction, [(check_id, number)], now)
        if not stored_check.counts_alike(before.published or {}, before.draft):
            scorecard_store.grade_again(transaction, [check_id], now)
    else:
        begin = before.evaluated_up_to if is_text else 0
        slot = before.pending_slot or slots.free(transaction)
        transaction.run(_PUBLISH, (text, number, slot, begin, now, actor, check_id))
        if not is_text:
            _evaluate_again(transaction, dependencies.readers(transaction, check_id))
    return _again(transaction, check_id)


def put_into_effect(transaction: Transaction, stored: Iterable[StoredCheck], now: int) -> None:
    """Make pending versions the published ones; what they replace is retired.

    Levels follow from them: the scorecards with them are graded anew. The transaction holds the
    lock of the definitions alone.
    """
    ids: list[str] = []
    for one in stored:
        if one.slot is not None:
            slots.retire(transaction, one.slot)
        transaction.run(_PUT_INTO_EFFECT, (now, one.id))
        ids.append(one.id)
    scorecard_store.grade_again(transaction, ids, now)
    raise_revision(transaction)


def delete(transaction: Transaction, check_id: str) -> bool:
    """Delete a check with its results and their history; False if there is none.

    Raises ConflictError if other checks read it.
    """
    definition_lock.take(transaction)
    found = read(transaction, check_id)
    if found is None:
        return False
    readers = dependencies.readers(transaction, check_id, drafts=True)
    if readers:
        told = f"{', '.join(readers)} read the check {check_id}; change them first."
        untold = f"{len(readers)} others read the check {check_id}; change them first."
        raise ConflictError(told).unless_read(ConflictError(untold))
    named = scorecard_store.naming(transaction, check_id)
    if named:
        told = f"The scorecards {', '.join(named)} have the check {check_id}; change them first."
        untold = f"{len(named)} scorecards have the check {check_id}; change them first."
        raise ConflictError(told).unless_read(ConflictError(untold))
    exemption_store.delete_of(transaction, "check", check_id)
    for slot in (found.slot, found.pending_slot):
        if slot is not None:
            slots.retire(transaction, slot)
    for statement in _DELETE:
        transaction.run(statement, (check_id,))
    raise_revision(transaction)
    return True


def progress(transaction: Transaction) -> dict[str, int]:
    """The last entity for which each pending version was evaluated, by the id of the check."""
    return dict(transaction.all(_PLACES))


def note_progress(transaction: Transaction, ids: list[str], evaluated_up_to: int) -> None:
    """Record the last entity for which pending versions were evaluated."""
    transaction.run(_PROGRESS, (evaluated_up_to, ids))


def _evaluate_again(transaction: Transaction, ids: Iterable[str]) -> None:
    """Evaluate published versions in new slots, or pending ones once more from the start."""
    for check_id in ids:
        found = _existing(transaction, check_id)
        slot = found.pending_slot or slots.free(transaction)
        transaction.run(_EVALUATE_AGAIN, (slot, check_id))


def _verify(transaction: Transaction, document: Document) -> None:
    rows = transaction.all(_NEWEST)
    others = {id_: msgspec.json.decode(text) for id_, text in rows if '"checks"' in text}
    dependencies.verify(document, others, {id_ for id_, _ in rows})


def _existing(transaction: Transaction, check_id: str) -> StoredCheck:
    found = read(transaction, check_id)
    if found is None:
        raise NotFoundError(f"There is no check {check_id}.")
    return found


def _again(transaction: Transaction, check_id: str) -> StoredCheck:
    """Count the change, then read the check."""
    raise_revision(transaction)
    return _existing(transaction, check_id)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


_EVERY = """
SELECT id, draft, published, pending, version, pending_version, slot, pending_slot,
    evaluated_up_to, created_at, created_by, updated_at, updated_by, published_at, published_by,
    in_effect_at
FROM checks ORDER BY id
"""

_ONE = _EVERY.replace("ORDER BY id", "WHERE id = ?")

_VERSIONS = "SELECT version, published_at, published_by FROM check_versions WHERE check_id = ?"

_VERSION = "SELECT document FROM check_versions WHERE check_id = ? AND version = ?"

_NEWEST = "SELECT id, COALESCE(draft, pending, published) FROM checks"

_CREATE = """
INSERT INTO checks (id, draft, version, created_at, created_by, updated_at, updated_by)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""

_REPLACE = "UPDATE checks SET draft = ?, updated_at = ?, updated_by = ? WHERE id = ?"

_ADD_VERSION = """INSERT INTO check_versions (check_id, version, document, published_at,
published_by) VALUES (?, ?, ?, ?, ?)"""

_PUBLISH_TEXT = """
UPDATE checks SET draft = NULL, published = ?, version = ?, published_at = ?, published_by = ?
WHERE id = ?
"""

_PUBLISH = """
UPDATE checks SET draft = NULL, pending = ?, pending_version = ?, pending_slot = ?,
    evaluated_up_to = ?, published_at = ?, published_by = ?
WHERE id = ?
"""

# One that was never published, nor is being, has nothing to evaluate.
_EVALUATE_AGAIN = """
UPDATE checks SET pending = COALESCE(pending, published), pending_slot = ?, evaluated_up_to = 0,
    pending_version = COALESCE(pending_version, version)
WHERE id = ?
"""

_PUT_INTO_EFFECT = """
UPDATE checks SET published = pending, version = pending_version, slot = pending_slot,
    in_effect_at = ?, pending = NULL, pending_version = NULL, pending_slot = NULL,
    evaluated_up_to = NULL
WHERE id = ?
"""

_PLACES = "SELECT id, evaluated_up_to FROM checks WHERE pending_slot IS NOT NULL"

_PROGRESS = "UPDATE checks SET evaluated_up_to = ? WHERE id IN LIST(?)"

_DELETE = (
    "DELETE FROM check_changes WHERE check_id = ?",
    "DELETE FROM check_days WHERE check_id = ?",
    "DELETE FROM check_versions WHERE check_id = ?",
    "DELETE FROM checks WHERE id = ?",
)
