"""The stores of user-defined sources, and of connections made at run time.

Source documents have the form used by discovery, as validated by `datasource.parse_source`.

The secrets of connections are encrypted. A user who may write connections can never read a secret
again, nor redirect it: values survive a change only while the address keeps its origin, and can be
decrypted only for that connection.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import Final, NamedTuple

import msgspec
import structlog

from factbook.auth import encryption
from factbook.auth.encryption import NotOpenedError
from factbook.datasources import clients
from factbook.datasources.custom.definition import HEADER_NAME, REFUSED_HEADER
from factbook.datasources.custom.sources import SourceConnection, Unusable
from factbook.definitions.documents import Document
from factbook.definitions.store import (
    EVERY_DEFINITION,
    MAJOR,
    MINOR,
    PATCH,
    DefinitionStore,
    DefinitionTables,
    StoredDefinition,
)
from factbook.errors import (
    ConfigurationError,
    ConflictError,
    FactbookError,
    InvalidItemsError,
    in_words,
    problem,
)
from factbook.facts import datasource, retention
from factbook.facts.datasource import DataSource
from factbook.scheduling import runs
from factbook.settings import option_tables
from factbook.storage import Database, Row, Transaction


class StoredSource(StoredDefinition, frozen=True):
    """A stored source."""

    def shown(self) -> DataSource:
        """The source as shown to users: with its version and times, and its draft status."""
        return changed(
            datasource.parse_source(self.current),
            draft=self.is_draft,
            version=self.version,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


class SourceStore(DefinitionStore[StoredSource]):
    """The sources. Changes to their connections also raise the revision."""

    def __init__(self) -> None:
        tables = DefinitionTables("data_sources", "data_source_versions", "source_id")
        super().__init__("data source", tables, StoredSource, "data_source")

    async def everything(self, database: Database) -> list[StoredSource]:
        """Every source, by id; read in portions, as their number is unlimited."""
        pages = database.pages(self._sql(EVERY_DEFINITION), size=100)
        return [self._stored(row) async for rows in pages for row in rows]

    def put(
        self, transaction: Transaction, document: Document, actor: str, now: int
    ) -> StoredSource:
        """Make the document the draft of its source; an equal document changes nothing.

        Before the first publication the draft is collected. Facts that don't fit a new draft are
        lost.
        """
        before = self.read(transaction, document["id"])
        after = super().put(transaction, document, actor, now)
        if before is not None and after != before:
            retention.drop_facts(
                transaction, before.id, describe_lost_facts(before.current, after.current)
            )
        return after

    def publish(
        self,
        transaction: Transaction,
        id_: str,
        actor: str,
        now: int,
        *,
        force: bool = False,
    ) -> StoredSource:
        """Publish the draft under the next version; without a draft nothing changes.

        Raises NotFoundError for an unknown source, and ConflictError, unless forced, if a fact was
        removed or has another type.
        """
        before = self.existing_within(transaction, id_)
        facts = describe_lost_facts(before.current, before.written)
        if facts and not force:
            raise _types_of_facts(facts)
        after = super().publish(transaction, id_, actor, now)
        retention.drop_facts(transaction, id_, facts)
        return after

    def raised(self, before: Document, after: Document) -> int:
        """Lost facts raise the major version, new ones the minor."""
        if describe_lost_facts(before, after):
            return MAJOR
        return MINOR if after["schema"].keys() - before["schema"].keys() else PATCH

    def forget(self, transaction: Transaction, stored: StoredSource) -> None:
        """Delete the facts, runs and memory of a source."""
        for forget_source in (
            retention.delete_source_facts,
            runs.delete_source_runs,
            clients.delete_source_memories,
        ):
            forget_source(transaction, stored.id)


def describe_lost_facts(before: Document, after: Document) -> dict[str, str]:
    """Describe each fact whose stored values no longer fit: removed, or of another type."""
    old, new = before["schema"], after["schema"]
    return {
        name: f"was {old[name]['type']}, is {new[name]['type']}" if name in new else "is removed"
        for name in old
        if name not in new or new[name]["type"] != old[name]["type"]
    }


def _types_of_facts(facts: Mapping[str, str]) -> ConflictError:
    words = "; ".join(f"{name} {what}" for name, what in facts.items())
    text = (
        "These facts would be lost to everything that reads them: {}. Publish with force to do so."
    )
    problems = [problem(f"schema.{name}", what) for name, what in facts.items()]
    error = ConflictError(text.format(words), problems=problems)
    return error.unless_read(ConflictError(text.format(f"{len(facts)} of them")))


source_store: Final = SourceStore()


Key = Callable[[], bytes]

log = structlog.get_logger("factbook.connections")

MOST_CONNECTIONS: Final = 200
_MOST_HEADERS: Final = 20
_LONGEST_VALUE: Final = 8_000
_PATHS: Final = {"base_url": "baseUrl", "shared_with": "sharedWith"}
_LABEL: Final = "connections"


@dataclass(frozen=True, kw_only=True)
class ConnectionInput:
    """The requested form of a connection; a header without a value keeps its current one."""

    base_url: str
    methods: tuple[str, ...] = ("GET",)
    at_once: int = 4
    headers: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    shared_with: tuple[str, ...] = ()


class ConnectionOptions(msgspec.Struct, frozen=True):
    """Unencrypted options; `headers` has the time at which each value was set, by name."""

    base_url: str
    methods: tuple[str, ...]
    at_once: int
    headers: dict[str, int]
    shared_with: tuple[str, ...] = ()


class StoredConnection(NamedTuple):
    """A connection without its secrets."""

    name: str
    options: ConnectionOptions
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str


async def list_stored_connections(database: Database) -> list[StoredConnection]:
    """All stored connections, by name."""
    return [_stored_connection(row) for row in await database.all(_EVERY_CONNECTION)]


async def open_connections(database: Database, key: Key) -> dict[str, SourceConnection | Unusable]:
    """The stored connections by name with their secrets, or the reason why one is unusable."""
    rows = await database.all(_EVERY_CONNECTION)
    return {row[0]: _open_connection(row, key) for row in rows}


def read_connection(transaction: Transaction, name: str) -> StoredConnection | None:
    """The connection, locked against changes until the end of the transaction."""
    found = _select_row(transaction, name)
    return None if found is None else _stored_connection(found)


def connection_owners(transaction: Transaction, name: str) -> tuple[str, ...]:
    """The owners with which the connection is shared; none if there is no such connection."""
    row = transaction.one(_ONE_CONNECTION, (name,))
    return () if row is None else _stored_connection(row).options.shared_with


def store_connection(
    transaction: Transaction, name: str, wanted: ConnectionInput, key: bytes, actor: str, now: int
) -> StoredConnection:
    """Create or change a connection; a header that is not named is removed.

    Raises InvalidItemsError, which contains no value, and ConflictError if values to keep cannot be
    decrypted, or if there are too many connections.
    """
    row = _select_row(transaction, name)
    if row is None and transaction.all(_CONNECTION_NAMES)[MOST_CONNECTIONS - 1 :]:
        raise ConflictError(f"There are already {MOST_CONNECTIONS} connections, the maximum.")
    headers = _check_headers(name, wanted)
    before = None if row is None else _stored_connection(row)
    kept = _kept_headers(wanted.base_url, headers, row, key)
    connection = _build_connection(
        wanted,
        {**kept, **{header: value for header, value in headers.items() if value is not None}},
    )
    times = {} if before is None else before.options.headers
    options = ConnectionOptions(
        connection.base_url,
        connection.methods,
        connection.at_once,
        {header: times[header] if header in kept else now for header in headers},
        connection.shared_with,
    )
    created = (now, actor) if before is None else (before.created_at, before.created_by)
    sealed = None
    if connection.headers:
        beside = _sealed_with(name, connection.base_url)
        content = msgspec.json.encode(connection.headers)
        sealed = encryption.seal_secret(key, _LABEL, beside, content)
    row = (name, _encode_json(options), sealed, *created, now, actor)
    transaction.run(_PUT_CONNECTION, row)
    source_store.raise_revision(transaction)
    return _stored_connection(row)


def rename_connection_owners(transaction: Transaction, names: Mapping[str, str]) -> None:
    """Rename the owners with which connections are shared."""
    transaction.lock("connections")
    changed = []
    for row in transaction.all(_EVERY_CONNECTION):
        options = _stored_connection(row).options
        shared = tuple(sorted({names.get(one, one) for one in options.shared_with}))
        if shared != options.shared_with:
            options = msgspec.structs.replace(options, shared_with=shared)
            changed.append((_encode_json(options), row[0]))
    transaction.many("UPDATE connections SET options = ? WHERE name = ?", changed)
    if changed:
        source_store.raise_revision(transaction)


def remove_connection(transaction: Transaction, name: str) -> None:
    """Remove a connection."""
    transaction.run("DELETE FROM connections WHERE name = ?", (name,))
    source_store.raise_revision(transaction)


def _check_headers(name: str, wanted: ConnectionInput) -> dict[str, str | None]:
    """The headers by name in lower case; raises InvalidItemsError."""
    problems = []
    if not option_tables.INSTANCE_NAME.fullmatch(name):
        problems.append(problem("name", "has to be of lower-case letters, digits, . _ and -"))
    if len(wanted.headers) > _MOST_HEADERS:
        problems.append(problem("headers", f"can be {_MOST_HEADERS} at most"))
    found: dict[str, str | None] = {}
    for header, value in wanted.headers.items():
        if not HEADER_NAME.fullmatch(header):
            # Not quoted: with the fields mixed up, this is the secret.
            problems.append(problem("headers", "has an invalid name"))
        elif REFUSED_HEADER.fullmatch(header):
            problems.append(problem(f"headers.{header}", "is not a connection's to set"))
        elif header.lower() in found:
            problems.append(problem(f"headers.{header}", "is given twice"))
        elif len(value or "") > _LONGEST_VALUE:
            problems.append(problem(f"headers.{header}", f"is longer than {_LONGEST_VALUE}"))
        found[header.lower()] = value
    if problems:
        raise InvalidItemsError(problems)
    return found


def _kept_headers(
    base_url: str, headers: Mapping[str, str | None], row: Row | None, key: bytes
) -> dict[str, str]:
    """The stored values of headers without a new one; raises the errors of `store_connection`."""
    keeping = [header for header, value in headers.items() if value is None]
    if not keeping:
        return {}
    before = None if row is None else _stored_connection(row)
    there = {} if before is None else before.options.headers
    problems = [
        problem(f"headers.{header}", "has no value yet; give one")
        for header in keeping
        if header not in there
    ]
    if before and option_tables.url_origin(before.options.base_url) != option_tables.url_origin(
        base_url
    ):
        problems = [
            problem(f"headers.{header}", "has to be given again, because the host is another one")
            for header in keeping
        ]
    if problems:
        raise InvalidItemsError(problems)
    assert row is not None, "where a value is kept, there is one"
    try:
        values = _open_headers(row, key)
    except NotOpenedError:
        raise ConflictError(_not_opened_problem(row[0])) from None
    return {header: values[header] for header in keeping}


def _build_connection(wanted: ConnectionInput, values: Mapping[str, str]) -> SourceConnection:
    """The connection; raises InvalidItemsError if one of its settings would be rejected."""
    options = {
        "base_url": wanted.base_url,
        "methods": wanted.methods,
        "at_once": wanted.at_once,
        "headers": dict(values),
        "shared_with": wanted.shared_with,
    }
    try:
        return msgspec.convert(options, SourceConnection)
    except msgspec.ValidationError as error:
        raise InvalidItemsError([problem("", in_words(error, SourceConnection))]) from None
    except ConfigurationError as error:
        # Messages begin with the name of the option.
        option, _, what = error.message.partition(" ")
        raise InvalidItemsError([problem(_PATHS.get(option, option), what)]) from None


def _open_connection(row: Row, key: Key) -> SourceConnection | Unusable:
    options = _stored_connection(row).options
    try:
        values = _open_headers(row, key()) if row[2] is not None else {}
        return SourceConnection(
            base_url=options.base_url,
            methods=options.methods,
            at_once=options.at_once,
            headers=values,
            shared_with=options.shared_with,
        )
    except NotOpenedError:
        reason = "sealed under another token key"
    except FactbookError as error:
        reason = error.message
    log.error("connection.unusable", connection=row[0], reason=reason)
    return Unusable(_not_opened_problem(row[0]), options.shared_with)


def _not_opened_problem(name: str) -> str:
    return (
        f"The headers of the connection {name!r} cannot be opened: they were sealed under another "
        "token key. Give their values again."
    )


def _open_headers(row: Row, key: bytes) -> dict[str, str]:
    """The decrypted values of the headers; raises NotOpenedError."""
    beside = _sealed_with(row[0], _stored_connection(row).options.base_url)
    content = encryption.open_secret(key, _LABEL, beside, bytes(row[2]))
    return msgspec.json.decode(content, type=dict[str, str])


def _sealed_with(name: str, base_url: str) -> str:
    return f"{name} {option_tables.url_origin(base_url)}"


def _select_row(transaction: Transaction, name: str) -> Row | None:
    transaction.lock("connections")
    return transaction.one(_ONE_CONNECTION, (name,))


def _stored_connection(row: Row) -> StoredConnection:
    name, options, _, *rest = row
    return StoredConnection(name, msgspec.json.decode(options, type=ConnectionOptions), *rest)


def _encode_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


_EVERY_CONNECTION = """
SELECT name, options, secrets, created_at, created_by, updated_at, updated_by
FROM connections ORDER BY name
"""

_ONE_CONNECTION = _EVERY_CONNECTION.replace("ORDER BY name", "WHERE name = ?")

_CONNECTION_NAMES = "SELECT name FROM connections"

_PUT_CONNECTION = """
INSERT INTO connections (name, options, secrets, created_at, created_by, updated_at, updated_by)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET options = excluded.options, secrets = excluded.secrets,
    updated_at = excluded.updated_at, updated_by = excluded.updated_by
"""
