"""The store of definitions of a kind: published documents, drafts and versions.

Readers see the document that was published last; before the first publication, its draft.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from factbook.definitions import documents, owners
from factbook.definitions.documents import Document, same
from factbook.errors import ConflictError, NotFoundError, no_such
from factbook.storage import Database, Row, Transaction, counters

# The version of a definition that was never published.
UNPUBLISHED: Final = "0.0.0"
# The part of a version that a publication raises.
MAJOR, MINOR, PATCH = range(3)

_DOCUMENTS: Final = ("draft", "published", "pending")


class DefinitionVersion(NamedTuple):
    """A publication of a document."""

    version: str
    published_at: int
    published_by: str


class StoredDefinition(msgspec.Struct, frozen=True):
    """A stored definition; `draft` is None if everything is published."""

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
        """The document in effect, or what comes closest to it before the first publication."""
        return self.published or self.newest or self.draft or {}

    @property
    def newest(self) -> dict[str, Any] | None:
        """The document that was published last."""
        return self.published

    @property
    def written(self) -> dict[str, Any]:
        """The document that was written last, published or not."""
        return self.draft or self.newest or {}

    @property
    def title(self) -> str:
        """The title in effect, or the id without one."""
        return str(self.current.get("title", self.id))

    @property
    def newest_version(self) -> str:
        """The version of that document."""
        return self.version

    @property
    def is_draft(self) -> bool:
        """True before the first publication."""
        return self.newest is None

    def next_version(self, part: int) -> str:
        """The version of the next publication, which raises a part of the last one."""
        if self.newest is None:
            return "1.0.0"
        numbers = _numbers(self.newest_version)
        return ".".join(map(str, [*numbers[:part], numbers[part] + 1, 0, 0][:3]))


S = TypeVar("S", bound=StoredDefinition)


class DefinitionTables(NamedTuple):
    """The table of the definitions of a kind, that of their versions, and its column of ids."""

    definitions: str
    versions: str
    id: str


class DefinitionStore(ABC, Generic[S]):
    """The definitions of a kind. Its fields are the columns of their table."""

    # The most that there may be, as they are read all at once.
    most: int | None = None

    def __init__(self, noun: str, tables: DefinitionTables, form: type[S], counter: str) -> None:
        self.noun = noun
        self._counter = counter
        self._form = form
        self._names = {**tables._asdict(), "columns": ", ".join(form.__struct_fields__)}

    async def revision(self, database: Database) -> int:
        """A number that increases with every change of a definition."""
        return await counters.value(database, self._counter)

    def raise_revision(self, transaction: Transaction) -> None:
        """Make every process reload the definitions."""
        counters.take(transaction, self._counter)

    async def everything(self, database: Database) -> list[S]:
        """Every definition, by its id."""
        return [self._stored(row) for row in await database.all(self._sql(EVERY))]

    async def one(self, database: Database, id_: str) -> S | None:
        """The definition with this id."""
        row = await database.one(self._sql(_ONE), (id_,))
        return self._stored(row) if row else None

    async def existing(self, database: Database, id_: str) -> S:
        """The definition with this id; raises NotFoundError."""
        found = await self.one(database, id_)
        if found is None:
            raise no_such(self.noun, id_, [one for (one,) in await database.all(self._sql(_IDS))])
        return found

    async def versions(self, database: Database, id_: str) -> list[DefinitionVersion]:
        """The published versions, newest first."""
        rows = await database.all(self._sql(_VERSIONS), (id_,))
        found = [DefinitionVersion(*row) for row in rows]
        return sorted(found, key=lambda one: _numbers(one.version), reverse=True)

    async def version(self, database: Database, id_: str, number: str) -> dict[str, Any] | None:
        """The document of a published version."""
        row = await database.one(self._sql(_VERSION), (id_, number))
        return None if row is None else msgspec.json.decode(row[0])

    def all_within(self, transaction: Transaction) -> list[S]:
        """Every definition, by its id, within a transaction."""
        return [self._stored(row) for row in transaction.all(self._sql(EVERY))]

    def read(self, transaction: Transaction, id_: str) -> S | None:
        """The definition with this id, locked against changes until the end of the transaction."""
        transaction.lock(f"{self.noun} {id_}")
        row = transaction.one(self._sql(_ONE), (id_,))
        return self._stored(row) if row else None

    def existing_within(self, transaction: Transaction, id_: str) -> S:
        """The definition with this id, locked; raises NotFoundError."""
        found = self.read(transaction, id_)
        if found is None:
            raise self.missing(transaction, id_)
        return found

    def create(self, transaction: Transaction, document: Document, actor: str, now: int) -> S:
        """Store a new definition as a draft; raises ConflictError if its id is taken."""
        id_ = document["id"]
        if self.read(transaction, id_) is not None:
            raise ConflictError(f"There is already a {self.noun} {id_}; PUT replaces it.")
        if self.most and transaction.one(self._sql(_NTH), (self.most - 1,)):
            raise ConflictError(f"There are {self.most} {self.noun}s already; delete one first.")
        self.verify(transaction, document)
        row = (id_, documents.json(document), UNPUBLISHED, now, actor, now, actor)
        transaction.run(self._sql(_CREATE), row)
        return self._again(transaction, id_)

    def put(self, transaction: Transaction, document: Document, actor: str, now: int) -> S:
        """Make the document the draft of its definition; an equal document changes nothing.

        A document equal to the published one discards the draft. A definition that is missing is
        created.
        """
        before = self.read(transaction, document["id"])
        if before is None:
            return self.create(transaction, document, actor, now)
        if same(document, before.draft or before.newest):
            return before
        self.verify(transaction, document)
        draft = None if same(document, before.newest) else documents.json(document)
        transaction.run(self._sql(_REPLACE), (draft, now, actor, before.id))
        return self._again(transaction, before.id)

    def publish(self, transaction: Transaction, id_: str, actor: str, now: int) -> S:
        """Publish the draft under the next version; without a draft nothing changes."""
        before = self.existing_within(transaction, id_)
        if before.draft is None:
            return before
        self.verify_publication(transaction, before.draft)
        part = MINOR if before.newest is None else self.raised(before.newest, before.draft)
        row = (before.next_version(part), now, actor)
        text = documents.json(before.draft)
        transaction.run(self._sql(_ADD_VERSION), (text, *row, id_))
        self._publish(transaction, before, DefinitionVersion(*row), part)
        return self._again(transaction, id_)

    def delete(self, transaction: Transaction, id_: str) -> bool:
        """Delete a definition with all that there is by it; False if there is none."""
        found = self.read(transaction, id_)
        if found is None:
            return False
        self.forget(transaction, found)
        transaction.run(self._sql(_DELETE_VERSIONS), (id_,))
        transaction.run(self._sql(_DELETE), (id_,))
        self.raise_revision(transaction)
        return True

    def rename(self, transaction: Transaction, names: Mapping[str, str]) -> None:
        """Give owners and approvers their other names, in all documents but earlier versions."""
        ids = [one.id for one in self.all_within(transaction) if _renamed(one, names)]
        for id_ in ids:
            stored = self.read(transaction, id_)
            for column, text in _renamed(stored, names).items():
                sql = self._sql(f"UPDATE {{definitions}} SET {column} = ? WHERE id = ?")
                transaction.run(sql, (text, id_))
        if ids:
            self.raise_revision(transaction)

    def missing(self, transaction: Transaction, id_: str) -> NotFoundError:
        """The error for an unknown definition."""
        return no_such(self.noun, id_, [one for (one,) in transaction.all(self._sql(_IDS))])

    def verify(self, transaction: Transaction, document: Document) -> None:
        """Raise InvalidItemsError if a document does not fit what is stored."""

    def verify_publication(self, transaction: Transaction, document: Document) -> None:
        """Raise the same if a draft does not fit what is published."""
        self.verify(transaction, document)

    @abstractmethod
    def raised(self, before: Document, after: Document) -> int:
        """The part of the version that is raised when one document follows on another."""

    @abstractmethod
    def forget(self, transaction: Transaction, stored: S) -> None:
        """Delete what there is by a definition; raises ConflictError if that cannot be."""

    def _publish(
        self, transaction: Transaction, before: S, version: DefinitionVersion, part: int
    ) -> None:
        """Make the draft the published document."""
        assert before.draft is not None
        text = documents.json(before.draft)
        transaction.run(self._sql(_PUBLISH), (text, *version, before.id))

    def _sql(self, text: str) -> str:
        """A statement with the names of the tables and columns."""
        return text.format_map(self._names)

    def _again(self, transaction: Transaction, id_: str) -> S:
        """Count the change, then read the definition."""
        self.raise_revision(transaction)
        return self.existing_within(transaction, id_)

    def _stored(self, row: Row) -> S:
        members = dict(zip(self._form.__struct_fields__, row, strict=True))
        for name in _DOCUMENTS:
            if text := members.get(name):
                members[name] = msgspec.json.decode(text)
        return self._form(**members)


def _renamed(stored: StoredDefinition | None, names: Mapping[str, str]) -> dict[str, str]:
    """The documents in which somebody gets another name, by column."""
    found = {name: getattr(stored, name, None) or {} for name in _DOCUMENTS}
    after = {name: owners.renamed(document, names) for name, document in found.items()}
    return {name: documents.json(one) for name, one in after.items() if one != found[name]}


def _numbers(version: str) -> list[int]:
    return list(map(int, version.split(".")))


EVERY: Final = "SELECT {columns} FROM {definitions} ORDER BY id"

_ONE: Final = "SELECT {columns} FROM {definitions} WHERE id = ?"

_IDS: Final = "SELECT id FROM {definitions} ORDER BY id"

_NTH: Final = "SELECT 1 FROM {definitions} LIMIT 1 OFFSET ?"

_VERSIONS: Final = "SELECT version, published_at, published_by FROM {versions} WHERE {id} = ?"

_VERSION: Final = "SELECT document FROM {versions} WHERE {id} = ? AND version = ?"

_CREATE: Final = """
INSERT INTO {definitions} (id, draft, version, created_at, created_by, updated_at, updated_by)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""

_REPLACE: Final = "UPDATE {definitions} SET draft = ?, updated_at = ?, updated_by = ? WHERE id = ?"

_ADD_VERSION: Final = """
INSERT INTO {versions} (document, version, published_at, published_by, {id}) VALUES (?, ?, ?, ?, ?)
"""

_PUBLISH: Final = """
UPDATE {definitions} SET draft = NULL, published = ?, version = ?, published_at = ?,
    published_by = ?
WHERE id = ?
"""

_DELETE_VERSIONS: Final = "DELETE FROM {versions} WHERE {id} = ?"

_DELETE: Final = "DELETE FROM {definitions} WHERE id = ?"
