"""The store of user-defined sources: published documents and drafts.

A source shows and collects its last published document; before the first publication, its draft.
Documents have the form used by discovery; `datasource.parse` has validated them before.
"""

from collections.abc import Mapping
from dataclasses import replace as changed
from typing import Any, Final, NamedTuple

import msgspec

from factbook.datasources import memory
from factbook.errors import ConflictError, NotFoundError
from factbook.facts import datasource, removal
from factbook.facts.datasource import DataSource
from factbook.scheduling import runs
from factbook.storage import Database, Transaction, counters

Document = Mapping[str, Any]

# The version of a source that was never published.
UNPUBLISHED: Final = "0.0.0"
# Members that the service sets; a file that holds one could say what is not true.
SERVICE_SET: Final = ("version", "draft", "createdAt", "updatedAt")
_REVISION: Final = "data_source"


class StoredSource(NamedTuple):
    """A stored source; `draft` is None if everything is published."""

    id: str
    draft: dict[str, Any] | None
    published: dict[str, Any] | None
    version: str
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    published_at: int | None
    published_by: str | None

    @property
    def current(self) -> dict[str, Any]:
        """The document in effect: the published one, or the draft before the first publication."""
        return self.published or self.draft or {}


class DefinitionVersion(NamedTuple):
    """A publication of a document."""

    version: str
    published_at: int
    published_by: str


def service_set(document: Document) -> list[dict[str, str]]:
    """A problem for each member of the document that only the service may set."""
    return [
        {"path": name, "message": "is set by the service; leave it out"}
        for name in SERVICE_SET
        if name in document
    ]


def same(document: Document, other: Document | None) -> bool:
    """Return true if two documents are equal, regardless of the order of object members."""
    return other is not None and _ordered(document) == _ordered(other)


def lost(before: Document, after: Document) -> dict[str, str]:
    """Describe each fact whose stored values no longer fit: removed, or of another type."""
    old, new = before["schema"], after["schema"]
    return {
        name: f"was {old[name]['type']}, is {new[name]['type']}" if name in new else "is removed"
        for name in old
        if name not in new or new[name]["type"] != old[name]["type"]
    }


def shown(stored: StoredSource) -> DataSource:
    """The source as shown to users: with its version and times, and its draft status."""
    return changed(
        datasource.parse(stored.current),
        draft=stored.published is None,
        version=stored.version,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
    )


async def revision(database: Database) -> int:
    """A number that increases with every change of a definition or of a connection it uses."""
    return await counters.value(database, _REVISION)


def raise_revision(transaction: Transaction) -> None:
    """Make every process reload the definitions and their connections."""
    counters.take(transaction, _REVISION)


async def everything(database: Database) -> list[StoredSource]:
    """Every source, by its id."""
    return [_stored(row) async for rows in database.pages(_EVERY, size=100) for row in rows]


async def one(database: Database, source_id: str) -> StoredSource | None:
    """The source with this id."""
    row = await database.one(_ONE, (source_id,))
    return _stored(row) if row else None


async def versions(database: Database, source_id: str) -> list[DefinitionVersion]:
    """The published versions, newest first."""
    found = [DefinitionVersion(*row) for row in await database.all(_VERSIONS, (source_id,))]
    return sorted(found, key=lambda one: _numbers(one.version), reverse=True)


def read(transaction: Transaction, source_id: str) -> StoredSource | None:
    """The source with this id, locked against changes until the end of the transaction."""
    transaction.lock(f"data source {source_id}")
    row = transaction.one(_ONE, (source_id,))
    return _stored(row) if row else None


def create(transaction: Transaction, document: Document, actor: str, now: int) -> StoredSource:
    """Store a new source as a draft; raises ConflictError if its id is taken."""
    source_id = document["id"]
    if read(transaction, source_id) is not None:
        raise ConflictError(f"There is already a data source {source_id}; PUT replaces it.")
    times = (now, actor, now, actor)
    transaction.run(_CREATE, (source_id, _json(document), UNPUBLISHED, *times))
    return _again(transaction, source_id)


def put(transaction: Transaction, document: Document, actor: str, now: int) -> StoredSource:
    """Make the document the draft of its source; an equal document changes nothing.

    A document equal to the published one discards the draft. A source that is missing is created.
    """
    before = read(transaction, document["id"])
    if before is None:
        return create(transaction, document, actor, now)
    if same(document, before.draft or before.current):
        return before
    draft = None if same(document, before.published) else _json(document)
    transaction.run(_REPLACE, (draft, now, actor, before.id))
    after = _again(transaction, before.id)
    removal.drop_facts(transaction, before.id, lost(before.current, after.current))
    return after


def publish(
    transaction: Transaction, source_id: str, actor: str, now: int, *, force: bool = False
) -> StoredSource:
    """Publish the draft under the next version; without a draft nothing changes.

    Raises NotFoundError for an unknown source, and ConflictError, unless forced, if a fact was
    removed or has another type.
    """
    before = _existing(transaction, source_id)
    if before.draft is None:
        return before
    facts = lost(before.current, before.draft)
    if facts and not force:
        raise _breaking(facts)
    version = _next(before, facts)
    text = _json(before.draft)
    transaction.run(_PUBLISH, (text, version, now, actor, source_id))
    transaction.run(_ADD_VERSION, (source_id, version, text, now, actor))
    removal.drop_facts(transaction, source_id, facts)
    return _again(transaction, source_id)


def delete(transaction: Transaction, source_id: str) -> bool:
    """Delete a source with its facts, runs and memory; False if there is none."""
    if read(transaction, source_id) is None:
        return False
    for forget_source in (removal.forget_source, runs.forget_source, memory.forget_source):
        forget_source(transaction, source_id)
    for statement in _DELETE:
        transaction.run(statement, (source_id,))
    raise_revision(transaction)
    return True


def _existing(transaction: Transaction, source_id: str) -> StoredSource:
    found = read(transaction, source_id)
    if found is None:
        raise NotFoundError(f"There is no data source {source_id} that was defined here.")
    return found


def _again(transaction: Transaction, source_id: str) -> StoredSource:
    """Count the change, then read the source."""
    raise_revision(transaction)
    return _existing(transaction, source_id)


def _breaking(facts: Mapping[str, str]) -> ConflictError:
    words = "; ".join(f"{name} {what}" for name, what in facts.items())
    text = (
        "These facts would be lost to everything that reads them: {}. Publish with force to do so."
    )
    problems = [{"path": f"schema.{name}", "message": what} for name, what in facts.items()]
    error = ConflictError(text.format(words), problems=problems)
    return error.unless_read(ConflictError(text.format(f"{len(facts)} of them")))


def _next(before: StoredSource, facts: Mapping[str, str]) -> str:
    """The version for the next publication."""
    if before.published is None:
        return "1.0.0"
    major, minor, patch = _numbers(before.version)
    if facts:
        return f"{major + 1}.0.0"
    draft = before.draft or {}
    if draft.get("schema", {}).keys() - before.published.get("schema", {}).keys():
        return f"{major}.{minor + 1}.0"
    return f"{major}.{minor}.{patch + 1}"


def _numbers(version: str) -> tuple[int, int, int]:
    major, minor, patch = map(int, version.split("."))
    return major, minor, patch


_ordered = msgspec.json.Encoder(order="deterministic").encode


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _stored(row: tuple[Any, ...]) -> StoredSource:
    draft, published = (None if text is None else msgspec.json.decode(text) for text in row[1:3])
    return StoredSource(row[0], draft, published, *row[3:])


_EVERY = """
SELECT id, draft, published, version, created_at, created_by, updated_at, updated_by,
    published_at, published_by
FROM data_sources ORDER BY id
"""

_ONE = _EVERY.replace("ORDER BY id", "WHERE id = ?")

_VERSIONS = """
SELECT version, published_at, published_by FROM data_source_versions WHERE source_id = ?
"""

_CREATE = """
INSERT INTO data_sources (id, draft, version, created_at, created_by, updated_at, updated_by)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""

_REPLACE = "UPDATE data_sources SET draft = ?, updated_at = ?, updated_by = ? WHERE id = ?"

_PUBLISH = """
UPDATE data_sources SET draft = NULL, published = ?, version = ?, published_at = ?,
    published_by = ?
WHERE id = ?
"""

_ADD_VERSION = """INSERT INTO data_source_versions (source_id, version, document, published_at,
published_by) VALUES (?, ?, ?, ?, ?)"""

_DELETE = (
    "DELETE FROM data_source_versions WHERE source_id = ?",
    "DELETE FROM data_sources WHERE id = ?",
)
