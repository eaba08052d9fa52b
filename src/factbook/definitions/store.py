"""Store of one kind of definition: documents, drafts, versions, and writes by owners."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from factbook.audit.trail import About, AuditEntry
from factbook.auth.permissions import TITLES
from factbook.catalog import people_trust
from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.store.locks import WriteLocks
from factbook.definitions import documents
from factbook.definitions.documents import Document, is_same_document
from factbook.errors import ConflictError, NotAllowedError, NotFoundError, no_such
from factbook.storage import Database, Row, Transaction, Write
from factbook.storage.database import fetch_counter, take_numbers

# The version of a definition that was never published.
UNPUBLISHED: Final = "0.0.0"
# The part of a version that a publication raises.
MAJOR, MINOR, PATCH = range(3)
_DOCUMENT_COLUMNS: Final = ("draft", "published", "pending")
T = TypeVar("T")
BOTH_VERSIONS: Final = ", published and drafted"


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
        """The published document, or the draft before the first publication."""
        return self.published or self.newest or self.draft or {}

    @property
    def newest(self) -> dict[str, Any] | None:
        """The last published document."""
        return self.published

    @property
    def written(self) -> dict[str, Any]:
        """The last written document, published or not."""
        return self.draft or self.newest or {}

    @property
    def title(self) -> str:
        """The title in effect, or the id without one."""
        return str(self.current.get("title", self.id))

    @property
    def newest_version(self) -> str:
        """The version of the last published document."""
        return self.version

    @property
    def is_draft(self) -> bool:
        """True before the first publication."""
        return self.newest is None

    def next_version(self, part: int) -> str:
        """The version of the next publication, with this part raised."""
        if self.newest is None:
            return "1.0.0"
        numbers = _version_numbers(self.newest_version)
        return ".".join(map(str, [*numbers[:part], numbers[part] + 1, 0, 0][:3]))


S = TypeVar("S", bound=StoredDefinition)


class DefinitionTables(NamedTuple):
    """The table of one kind of definition, its versions table, and the id column there."""

    definitions: str
    versions: str
    id: str


class DefinitionStore(ABC, Generic[S]):
    """The definitions of one kind. The fields of `S` are the columns of the table."""

    # The largest number, as all definitions are read at once.
    most: int | None = None

    def __init__(self, noun: str, tables: DefinitionTables, form: type[S], counter: str) -> None:
        self.noun = noun
        self._counter = counter
        self._form = form
        self._names = {**tables._asdict(), "columns": ", ".join(form.__struct_fields__)}

    async def revision(self, database: Database) -> int:
        """A number that increases with every change of a definition."""
        return await fetch_counter(database, self._counter)

    def raise_revision(self, transaction: Transaction) -> None:
        """Make every process reload the definitions."""
        take_numbers(transaction, self._counter)

    async def everything(self, database: Database) -> list[S]:
        """Every definition, by its id."""
        return [self._stored(row) for row in await database.all(self._sql(EVERY_DEFINITION))]

    async def one(self, database: Database, id_: str) -> S | None:
        """The definition with this id."""
        row = await database.one(self._sql(_ONE_DEFINITION), (id_,))
        return self._stored(row) if row else None

    async def existing(self, database: Database, id_: str) -> S:
        """The definition with this id; raises NotFoundError."""
        found = await self.one(database, id_)
        if found is None:
            raise no_such(
                self.noun, id_, [one for (one,) in await database.all(self._sql(_DEFINITION_IDS))]
            )
        return found

    async def versions(self, database: Database, id_: str) -> list[DefinitionVersion]:
        """The published versions, newest first."""
        rows = await database.all(self._sql(_DEFINITION_VERSIONS), (id_,))
        found = [DefinitionVersion(*row) for row in rows]
        return sorted(found, key=lambda one: _version_numbers(one.version), reverse=True)

    async def version(self, database: Database, id_: str, number: str) -> dict[str, Any] | None:
        """The document of a published version."""
        row = await database.one(self._sql(_VERSION_DOCUMENT), (id_, number))
        return None if row is None else msgspec.json.decode(row[0])

    def all_within(self, transaction: Transaction) -> list[S]:
        """Every definition, by its id, within a transaction."""
        return [self._stored(row) for row in transaction.all(self._sql(EVERY_DEFINITION))]

    def read(self, transaction: Transaction, id_: str) -> S | None:
        """The definition with this id, locked against changes until the end of the transaction."""
        transaction.lock(f"{self.noun} {id_}")
        row = transaction.one(self._sql(_ONE_DEFINITION), (id_,))
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
        if self.most and transaction.one(self._sql(_NTH_DEFINITION), (self.most - 1,)):
            raise ConflictError(f"There are {self.most} {self.noun}s already; delete one first.")
        self.verify(transaction, document)
        row = (id_, documents.stored_document(document), UNPUBLISHED, now, actor, now, actor)
        transaction.run(self._sql(_CREATE_DEFINITION), row)
        return self._again(transaction, id_)

    def put(self, transaction: Transaction, document: Document, actor: str, now: int) -> S:
        """Make the document the draft of its definition; an equal document changes nothing.

        A document equal to the published one discards the draft. A definition that is missing is
        created.
        """
        before = self.read(transaction, document["id"])
        if before is None:
            return self.create(transaction, document, actor, now)
        if is_same_document(document, before.draft or before.newest):
            return before
        self.verify(transaction, document)
        draft = (
            None
            if is_same_document(document, before.newest)
            else documents.stored_document(document)
        )
        transaction.run(self._sql(_REPLACE_DRAFT), (draft, now, actor, before.id))
        return self._again(transaction, before.id)

    def publish(self, transaction: Transaction, id_: str, actor: str, now: int) -> S:
        """Publish the draft under the next version; without a draft nothing changes."""
        before = self.existing_within(transaction, id_)
        if before.draft is None:
            return before
        self.verify_publication(transaction, before.draft)
        part = MINOR if before.newest is None else self.raised(before.newest, before.draft)
        row = (before.next_version(part), now, actor)
        text = documents.stored_document(before.draft)
        transaction.run(self._sql(_ADD_VERSION), (text, *row, id_))
        self._publish(transaction, before, DefinitionVersion(*row), part)
        return self._again(transaction, id_)

    def delete(self, transaction: Transaction, id_: str) -> bool:
        """Delete a definition and everything that depends on it; False if missing."""
        found = self.read(transaction, id_)
        if found is None:
            return False
        self.forget(transaction, found)
        transaction.run(self._sql(_DELETE_VERSIONS), (id_,))
        transaction.run(self._sql(_DELETE_DEFINITION), (id_,))
        self.raise_revision(transaction)
        return True

    def rename(self, transaction: Transaction, names: Mapping[str, str]) -> None:
        """Rename owners and approvers in all documents except earlier versions."""
        ids = [one.id for one in self.all_within(transaction) if _renamed_documents(one, names)]
        for id_ in ids:
            stored = self.read(transaction, id_)
            for column, text in _renamed_documents(stored, names).items():
                sql = self._sql(f"UPDATE {{definitions}} SET {column} = ? WHERE id = ?")
                transaction.run(sql, (text, id_))
        if ids:
            self.raise_revision(transaction)

    def missing(self, transaction: Transaction, id_: str) -> NotFoundError:
        """The error for an unknown definition."""
        return no_such(
            self.noun, id_, [one for (one,) in transaction.all(self._sql(_DEFINITION_IDS))]
        )

    def verify(self, transaction: Transaction, document: Document) -> None:
        """Raise InvalidItemsError if a document does not fit what is stored."""

    def verify_publication(self, transaction: Transaction, document: Document) -> None:
        """Raise InvalidItemsError if a draft does not fit the published document."""
        self.verify(transaction, document)

    @abstractmethod
    def raised(self, before: Document, after: Document) -> int:
        """The part of the version to raise when `after` replaces `before`."""

    @abstractmethod
    def forget(self, transaction: Transaction, stored: S) -> None:
        """Delete everything that depends on a definition; raises ConflictError if impossible."""

    def _publish(
        self, transaction: Transaction, before: S, version: DefinitionVersion, part: int
    ) -> None:
        assert before.draft is not None
        text = documents.stored_document(before.draft)
        transaction.run(self._sql(_PUBLISH_DRAFT), (text, *version, before.id))

    def _sql(self, text: str) -> str:
        """A statement with the names of the tables and columns."""
        return text.format_map(self._names)

    def _again(self, transaction: Transaction, id_: str) -> S:
        """Raise the revision, then read the definition."""
        self.raise_revision(transaction)
        return self.existing_within(transaction, id_)

    def _stored(self, row: Row) -> S:
        members = dict(zip(self._form.__struct_fields__, row, strict=True))
        for name in _DOCUMENT_COLUMNS:
            if text := members.get(name):
                members[name] = msgspec.json.decode(text)
        return self._form(**members)


def _renamed_documents(stored: StoredDefinition | None, names: Mapping[str, str]) -> dict[str, str]:
    """The documents changed by renaming, by column."""
    found = {name: getattr(stored, name, None) or {} for name in _DOCUMENT_COLUMNS}
    after = {
        name: documents.rename_in_document(document, names) for name, document in found.items()
    }
    return {
        name: documents.stored_document(one) for name, one in after.items() if one != found[name]
    }


def _version_numbers(version: str) -> list[int]:
    return list(map(int, version.split(".")))


class OwnedDefinition(ABC, Generic[S]):
    """Guard of a write: the actor's groups own the definition before and after.

    Other writes need the permission `needed`. Until the commit, the definition's owner and the
    actor's group memberships are locked.
    """

    def __init__(
        self, store: DefinitionStore[S], id_: str, actor: str, needed: str, trust: PeopleTrust
    ) -> None:
        self._store = store
        self._id = id_
        self._actor = actor
        self._needed = needed
        self._trust = trust
        self._groups: frozenset[str] = frozenset()
        self._before: S | None = None
        self._group = ""

    def guarding(self, write: Write) -> Write:
        """The runner, raising NotAllowedError if others own the definition, before or after."""

        def guarded(function: Callable[[Transaction], T], /) -> Awaitable[T]:
            held = WriteLocks({}, self)

            def work(transaction: Transaction) -> T:
                held.begin(transaction)
                result = function(transaction)
                held.end(transaction)
                return result

            return write(work)

        return guarded

    def begin(self, transaction: Transaction, held: WriteLocks) -> None:
        """Check the owners, and lock the definition and the actor's groups."""
        self._groups = people_trust.lock_groups(transaction, held, self._actor, self._trust)
        self._before = self._check(transaction)

    def end(self, transaction: Transaction) -> str:
        """Check the owners again after the write; returns the group that allows it."""
        self.verify(transaction, self._before, self._check(transaction))
        return f"group {self._group}"

    def told(self, about: AuditEntry | About) -> About:
        """The audit entry, with the group that allowed the write."""

        def entry(result: Any) -> AuditEntry | None:
            found = about if isinstance(about, AuditEntry) else about(result)
            return found and found._replace(grant=f"group {self._group}")

        return entry

    @abstractmethod
    def owners(self, stored: S) -> frozenset[str]:
        """The owners that must be groups of the actor; "" for none."""

    @abstractmethod
    def refusal(self) -> NotAllowedError:
        """The error for a definition that others own."""

    def verify(self, transaction: Transaction, before: S | None, after: S | None) -> None:
        """Raise an error for a write that owners may not make."""

    def _check(self, transaction: Transaction) -> S | None:
        """The definition, locked against a change of owner."""
        stored = self._store.read(transaction, self._id)
        if stored is None:
            return None
        found = self.owners(stored)
        if not found or not found <= self._groups:
            raise self.refusal()
        self._group = min(found)
        return stored


def not_own_error(noun: str, needed: str, versions: str = BOTH_VERSIONS) -> NotAllowedError:
    """The error if no group of the actor owns the definition in these versions."""
    return NotAllowedError(
        f"A group of yours has to own this {noun}{versions}; for others it needs the "
        f'permission "{TITLES[needed]}" ({needed}).',
        missing=(needed,),
    )


EVERY_DEFINITION: Final = "SELECT {columns} FROM {definitions} ORDER BY id"

_ONE_DEFINITION: Final = "SELECT {columns} FROM {definitions} WHERE id = ?"

_DEFINITION_IDS: Final = "SELECT id FROM {definitions} ORDER BY id"

_NTH_DEFINITION: Final = "SELECT 1 FROM {definitions} LIMIT 1 OFFSET ?"

_DEFINITION_VERSIONS: Final = (
    "SELECT version, published_at, published_by FROM {versions} WHERE {id} = ?"
)

_VERSION_DOCUMENT: Final = "SELECT document FROM {versions} WHERE {id} = ? AND version = ?"

_CREATE_DEFINITION: Final = """
INSERT INTO {definitions} (id, draft, version, created_at, created_by, updated_at, updated_by)
VALUES (?, ?, ?, ?, ?, ?, ?)
"""

_REPLACE_DRAFT: Final = (
    "UPDATE {definitions} SET draft = ?, updated_at = ?, updated_by = ? WHERE id = ?"
)

_ADD_VERSION: Final = """
INSERT INTO {versions} (document, version, published_at, published_by, {id}) VALUES (?, ?, ?, ?, ?)
"""

_PUBLISH_DRAFT: Final = """
UPDATE {definitions} SET draft = NULL, published = ?, version = ?, published_at = ?,
    published_by = ?
WHERE id = ?
"""

_DELETE_VERSIONS: Final = "DELETE FROM {versions} WHERE {id} = ?"

_DELETE_DEFINITION: Final = "DELETE FROM {definitions} WHERE id = ?"
