"""The store of scorecards: published documents, drafts, and gradings under way.

Readers see the levels of the slot in effect. When other levels follow from a publication, of the
scorecard or of one of its checks, all entities are graded for a pending slot, which then takes its
place (checks/grades.py).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from factbook.checks import definition_lock, exemption_store, grade_slots, scorecard
from factbook.checks.definition_lock import raise_revision
from factbook.datasources.definitions import UNPUBLISHED, DefinitionVersion, Document, same
from factbook.errors import ConflictError, NotFoundError
from factbook.storage import Database, Transaction

MOST: Final = 200

# What decides about levels; all else is text.
_GRADED: Final = ("appliesTo", "levels", "entries", "minimumCoverage")


class StoredScorecard(NamedTuple):
    """A stored scorecard; `draft` is None if everything is published, `slot` before any grading."""

    id: str
    draft: dict[str, Any] | None
    published: dict[str, Any] | None
    pending: dict[str, Any] | None
    version: str
    pending_version: str | None
    slot: int | None
    pending_slot: int | None
    graded_up_to: int | None
    graded_at: int | None
    pending_graded_at: int | None
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    published_at: int | None
    published_by: str | None

    @property
    def current(self) -> dict[str, Any]:
        """The document in effect, or what comes closest to it before the first publication."""
        return self.published or self.pending or self.draft or {}

    @property
    def newest(self) -> dict[str, Any] | None:
        """The document that was published last."""
        return self.pending or self.published


async def everything(database: Database) -> list[StoredScorecard]:
    """Every scorecard, by its id."""
    return [_stored(row) for row in await database.all(_EVERY)]


async def one(database: Database, scorecard_id: str) -> StoredScorecard | None:
    """The scorecard with this id."""
    row = await database.one(_ONE, (scorecard_id,))
    return _stored(row) if row else None


async def versions(database: Database, scorecard_id: str) -> list[DefinitionVersion]:
    """The published versions, newest first."""
    found = [DefinitionVersion(*row) for row in await database.all(_VERSIONS, (scorecard_id,))]
    return sorted(found, key=lambda one: _numbers(one.version), reverse=True)


def read(transaction: Transaction, scorecard_id: str) -> StoredScorecard | None:
    """The scorecard with this id, locked against changes until the end of the transaction."""
    transaction.lock(f"scorecard {scorecard_id}")
    row = transaction.one(_ONE, (scorecard_id,))
    return _stored(row) if row else None


def all_within(transaction: Transaction) -> list[StoredScorecard]:
    """Every scorecard, by its id, within a transaction."""
    return [_stored(row) for row in transaction.all(_EVERY)]


def create(transaction: Transaction, document: Document, actor: str, now: int) -> StoredScorecard:
    """Store a new scorecard as a draft.

    Raises InvalidItemsError with every mistake of it, and ConflictError if its id is taken.
    """
    _verify(transaction, document)
    scorecard_id = document["id"]
    if read(transaction, scorecard_id) is not None:
        raise ConflictError(f"There is already a scorecard {scorecard_id}; PUT replaces it.")
    [number] = transaction.one("SELECT count(*) FROM scorecards") or (0,)
    if number >= MOST:
        raise ConflictError(f"There are {MOST} scorecards already; delete one first.")
    transaction.run(_CREATE, (scorecard_id, _json(document), UNPUBLISHED, now, actor, now, actor))
    return _again(transaction, scorecard_id)


def put(transaction: Transaction, document: Document, actor: str, now: int) -> StoredScorecard:
    """Make the document the draft of its scorecard; an equal document changes nothing.

    A document equal to the published one discards the draft. One that is missing is created.
    Raises InvalidItemsError with every mistake.
    """
    _verify(transaction, document)
    before = read(transaction, document["id"])
    if before is None:
        return create(transaction, document, actor, now)
    if same(document, before.draft or before.newest):
        return before
    draft = None if same(document, before.newest) else _json(document)
    transaction.run(_REPLACE, (draft, now, actor, before.id))
    return _again(transaction, before.id)


def publish(transaction: Transaction, scorecard_id: str, actor: str, now: int) -> StoredScorecard:
    """Publish the draft under the next version; without a draft nothing changes.

    If it changes levels, the version is pending until every entity is graded.
    """
    definition_lock.take(transaction)
    before = _existing(transaction, scorecard_id)
    if before.draft is None:
        return before
    _verify(transaction, before.draft)
    is_text = before.newest is not None and _graded(before.newest) == _graded(before.draft)
    number, text = _next(before, is_text=is_text), _json(before.draft)
    transaction.run(_ADD_VERSION, (scorecard_id, number, text, now, actor))
    if is_text and before.pending is None:
        transaction.run(_PUBLISH_TEXT, (text, number, now, actor, scorecard_id))
    else:
        transaction.run(_PUBLISH, (text, number, now, actor, scorecard_id))
        if not is_text:
            grade_slots.begin(transaction, _existing(transaction, scorecard_id), now)
    return _again(transaction, scorecard_id)


def naming(transaction: Transaction, check_id: str) -> list[str]:
    """The ids of the scorecards with a check, published or as a draft."""
    return grade_slots.naming(all_within(transaction), [check_id], drafts=True)


def grade_again(transaction: Transaction, check_ids: Iterable[str], now: int) -> None:
    """Grade all entities anew for the published scorecards that name one of the checks.

    The transaction holds the lock of the definitions alone.
    """
    stored = all_within(transaction)
    found = grade_slots.naming(stored, check_ids)
    for one in stored:
        if one.id in found:
            grade_slots.begin(transaction, one, now)
    if found:
        raise_revision(transaction)


def delete(transaction: Transaction, scorecard_id: str) -> bool:
    """Delete a scorecard with its days and versions; False if there is none."""
    definition_lock.take(transaction)
    found = read(transaction, scorecard_id)
    if found is None:
        return False
    grade_slots.release(transaction, found)
    exemption_store.delete_of(transaction, "scorecard", scorecard_id)
    for statement in _DELETE:
        transaction.run(statement, (scorecard_id,))
    raise_revision(transaction)
    return True


def _verify(transaction: Transaction, document: Document) -> None:
    """Raise InvalidItemsError with every mistake of a document."""
    scorecard.parse(document, {id_ for (id_,) in transaction.all("SELECT id FROM checks")})


def _existing(transaction: Transaction, scorecard_id: str) -> StoredScorecard:
    found = read(transaction, scorecard_id)
    if found is None:
        raise NotFoundError(f"There is no scorecard {scorecard_id}.")
    return found


def _again(transaction: Transaction, scorecard_id: str) -> StoredScorecard:
    """Count the change, then read the scorecard."""
    raise_revision(transaction)
    return _existing(transaction, scorecard_id)


def _graded(document: Mapping[str, Any]) -> list[Any]:
    return [document.get(name) for name in _GRADED]


def _next(before: StoredScorecard, *, is_text: bool) -> str:
    """The version for the next publication."""
    if before.newest is None:
        return "1.0.0"
    major, minor, patch = _numbers(before.pending_version or before.version)
    return f"{major}.{minor}.{patch + 1}" if is_text else f"{major}.{minor + 1}.0"


def _numbers(version: str) -> tuple[int, int, int]:
    major, minor, patch = map(int, version.split("."))
    return major, minor, patch


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _stored(row: tuple[Any, ...]) -> StoredScorecard:
    documents = (None if text is None else msgspec.json.decode(text) for text in row[1:4])
    return StoredScorecard._make((row[0], *documents, *row[4:]))


_EVERY = """
SELECT id, draft, published, pending, version, pending_version, slot, pending_slot, graded_up_to,
    graded_at, pending_graded_at, created_at, created_by, updated_at, updated_by, published_at,
    published_by
FROM scorecards ORDER BY id
"""

_ONE = _EVERY.replace("ORDER BY id", "WHERE id = ?")

_VERSIONS = """
SELECT version, published_at, published_by FROM scorecard_versions WHERE scorecard_id = ?
"""

_CREATE = """
INSERT INTO scorecards (id, draft, version, created_at, created_by, updated_at, updated_by)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""

_REPLACE = "UPDATE scorecards SET draft = ?, updated_at = ?, updated_by = ? WHERE id = ?"

_ADD_VERSION = """INSERT INTO scorecard_versions (scorecard_id, version, document, published_at,
published_by) VALUES (?, ?, ?, ?, ?)"""

_PUBLISH_TEXT = """
UPDATE scorecards SET draft = NULL, published = ?, version = ?, published_at = ?, published_by = ?
WHERE id = ?
"""

_PUBLISH = """
UPDATE scorecards SET draft = NULL, pending = ?, pending_version = ?, published_at = ?,
    published_by = ?
WHERE id = ?
"""

_DELETE = (
    "DELETE FROM scorecard_days WHERE scorecard_id = ?",
    "DELETE FROM scorecard_versions WHERE scorecard_id = ?",
    "DELETE FROM scorecards WHERE id = ?",
)
