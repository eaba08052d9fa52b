"""Changes to data sources by editors and members of the owning groups; changes to connections.

`write` runs the change in a transaction.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from factbook import invisible
from factbook.auth.permissions import SOURCE_WRITE
from factbook.catalog import people_trust
from factbook.catalog.people_trust import PeopleTrust
from factbook.datasources import stores
from factbook.datasources.custom import definition
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.custom.sources import SourceConnection, Unusable
from factbook.datasources.registry import Registry
from factbook.datasources.stores import (
    ConnectionInput,
    StoredConnection,
    StoredSource,
    source_store,
)
from factbook.definitions import documents
from factbook.definitions.documents import document_owner, version_owners
from factbook.definitions.store import BOTH_VERSIONS, OwnedDefinition, not_own_error
from factbook.errors import (
    ConflictError,
    InvalidItemsError,
    NotAllowedError,
    NotFoundError,
    no_such,
    problem,
)
from factbook.facts import retention
from factbook.facts.datasource import DataSource
from factbook.integrations import VENDORS
from factbook.storage import Database, Row, Transaction, Write

log = structlog.get_logger("factbook.data_sources")
Document = dict[str, Any]
_CONNECTION_PATH: Final = "handlerDefinition.config.connection"


async def read_source(
    document: Document, registry: Registry, max_depth: int, source_id: str | None = None
) -> CustomSourceDefinition:
    """The definition in a document.

    Raises the errors of `read_definition`, and ConflictError for the id of a builtin source.
    """
    found = await documents.read_definition(document, _parse_source, max_depth, source_id)
    check_custom_id(document["id"], registry)
    return found


def _parse_source(document: Document) -> CustomSourceDefinition:
    schema = document.get("schema")
    unseen = [
        {"path": f"schema.{name}", "message": "has an invisible character"}
        for name in (schema if isinstance(schema, dict) else ())
        if invisible.has(name)
    ]
    try:
        found = definition.read_source_definition(document)
    except InvalidItemsError as error:
        raise error.after(unseen) from None
    if unseen:
        raise InvalidItemsError(unseen)
    return found


def check_custom_id(source_id: str, registry: Registry) -> None:
    """Raise ConflictError if this is the id of a builtin source."""
    if source_id in registry.fixed.sources:
        raise ConflictError(f"{source_id} is a built-in data source and cannot be changed.")
    if source_id in VENDORS:
        raise ConflictError(f"{source_id} is the id of a built-in data source; choose another one.")


async def find_source(registry: Registry, source_id: str) -> DataSource:
    """The current source with this id, builtin or custom; raises NotFoundError."""
    sources = (await registry.latest()).sources
    source = sources.get(source_id)
    if source is None:
        raise no_such("data source", source_id, sources)
    return source


async def source_problem(registry: Registry, stored: StoredSource) -> str | None:
    """The reason why a stored source cannot be collected on this server; None if it can."""
    await registry.latest()
    return await asyncio.to_thread(registry.problem, stored)


async def create_source(
    registry: Registry, document: Document, *, actor: str, now: int, write: Write
) -> StoredSource:
    """Store a checked document as a new draft; raises ConflictError if it is not new."""
    work = partial(source_store.create, document=document, actor=actor, now=now)
    stored = await write(work)
    return _log_change("created", stored, registry, actor)


async def replace_source(
    registry: Registry, document: Document, *, actor: str, now: int, write: Write
) -> StoredSource:
    """Make a checked document the draft of its source, which is created if missing.

    An equal document changes nothing.
    """

    def work(transaction: Transaction) -> StoredSource:
        stored = source_store.put(transaction, document, actor, now)
        transaction.evaluate_checks()
        return stored

    stored = await write(work)
    return _log_change("replaced", stored, registry, actor)


async def publish_source(
    database: Database,
    registry: Registry,
    source_id: str,
    *,
    actor: str,
    now: int,
    write: Write,
    force: bool = False,
) -> StoredSource:
    """Publish the draft under the next version; without a draft nothing changes.

    Raises NotFoundError, and ConflictError for a builtin source and, unless forced, if a fact was
    removed or has another type.
    """
    check_custom_id(source_id, registry)
    await source_store.existing(database, source_id)

    def work(transaction: Transaction) -> StoredSource:
        stored = source_store.publish(transaction, source_id, actor, now, force=force)
        transaction.evaluate_checks()
        return stored

    stored = await write(work)
    return _log_change("published", stored, registry, actor)


async def delete_source(
    database: Database,
    registry: Registry,
    source_id: str,
    *,
    actor: str,
    write: Write,
    drop: Write | None = None,
) -> None:
    """Delete a source with its facts, their history and its runs.

    `drop_history` deletes the history first, in its own transactions. Raises NotFoundError, and
    ConflictError for a builtin source.
    """
    check_custom_id(source_id, registry)
    await source_store.existing(database, source_id)
    # History is large: it is deleted first, in portions. If interrupted, deletion can be repeated.
    await retention.drop_history(database, source_id, drop or database.write)

    def work(transaction: Transaction) -> None:
        if not source_store.delete(transaction, source_id):
            raise source_store.missing(transaction, source_id)
        transaction.evaluate_checks()

    await write(work)
    registry.forget()
    log.info("data_source.deleted", source=source_id, actor=actor)


def _log_change(event: str, stored: StoredSource, registry: Registry, actor: str) -> StoredSource:
    registry.forget()
    log.info(f"data_source.{event}", source=stored.id, version=stored.version, actor=actor)
    return stored


class OwnedSource(OwnedDefinition[StoredSource]):
    """Guard of a write to a data source that the actor's groups own, before and after.

    SOURCE_WRITE requires ownership of the published document and the draft; other permissions, such
    as running the source, of the document in effect. `configured` are the connections of the
    settings. A written source may only use connections that are shared with its owner.
    """

    def __init__(
        self,
        source_id: str,
        actor: str,
        trust: PeopleTrust,
        configured: Mapping[str, SourceConnection],
        needed: str = SOURCE_WRITE,
    ) -> None:
        super().__init__(source_store, source_id, actor, needed, trust)
        self._configured = configured

    def owners(self, stored: StoredSource) -> frozenset[str]:
        return _owners_of_versions(stored, self._needed)

    def refusal(self) -> NotAllowedError:
        return _not_own_error(self._needed)

    def verify(
        self, transaction: Transaction, before: StoredSource | None, after: StoredSource | None
    ) -> None:
        """Raise InvalidItemsError for a connection that the owner may not use."""
        # A source can be deleted whatever its connection.
        if after is not None and after != before and self._needed == SOURCE_WRITE:
            self._check_connection(transaction, after)

    def _check_connection(self, transaction: Transaction, stored: StoredSource) -> None:
        """Raise InvalidItemsError if the owner may not use the connection of the written source."""
        handler = stored.written["handlerDefinition"]
        name, owner = (
            handler["config"]["connection"] if handler["type"] == "http" else None,
            document_owner(stored.written),
        )
        if name is None:
            return
        given = self._configured.get(name)
        if given is not None:
            shared = given.shared_with
        else:
            shared = stores.connection_owners(transaction, name)
        if owner not in shared:
            told = f"is not shared with {owner}; an operator can share it"
            raise InvalidItemsError([problem(_CONNECTION_PATH, told)])


async def is_own_source(
    database: Database,
    stored: StoredSource,
    actor: str,
    trust: PeopleTrust,
    needed: str = SOURCE_WRITE,
) -> bool:
    """True if the actor's groups own the source, as OwnedSource requires."""
    return _owners_of_versions(stored, needed) <= await people_trust.read_groups(
        database, actor, trust
    )


async def check_own_source(
    database: Database, stored: StoredSource, actor: str, trust: PeopleTrust
) -> None:
    """Raise NotAllowedError unless the actor's groups own the published source and its draft."""
    if not await is_own_source(database, stored, actor, trust):
        raise _not_own_error(SOURCE_WRITE)


async def check_trial_allowed(
    database: Database, source_id: str, owner: str | None, actor: str, trust: PeopleTrust
) -> None:
    """Raise NotAllowedError for a trial of a definition that no group of the actor owns.

    The same holds for a definition with the id of a source that others own.
    """
    stored = await source_store.one(database, source_id)
    if stored is not None:
        await check_own_source(database, stored, actor, trust)
    if owner not in await people_trust.read_groups(database, actor, trust):
        raise _not_own_error(SOURCE_WRITE)


def _owners_of_versions(stored: StoredSource, needed: str) -> frozenset[str]:
    if needed == SOURCE_WRITE:
        return version_owners(stored.published, stored.draft)
    return version_owners(stored.current)


def _not_own_error(needed: str) -> NotAllowedError:
    versions = BOTH_VERSIONS if needed == SOURCE_WRITE else ""
    return not_own_error(source_store.noun, needed, versions)


connection_log = structlog.get_logger("factbook.connections")


class ConnectionDetail(NamedTuple):
    """A connection without its secrets.

    `headers` has the time at which each value was set, by name; for a connection from the settings
    the times are unknown, and `stored` is None. `problem` is the reason why it is unusable,
    `used_by` are the sources that use it.
    """

    name: str
    base_url: str
    methods: tuple[str, ...]
    at_once: int
    headers: Mapping[str, int | None]
    shared_with: Sequence[str]
    used_by: Sequence[str]
    stored: StoredConnection | None = None
    problem: str | None = None


async def list_connections(database: Database, registry: Registry) -> list[ConnectionDetail]:
    """All connections, from the settings or stored, by name."""
    await registry.latest()
    users = await _sources_by_connection(database)
    configured = registry.configured
    details = [
        ConnectionDetail(
            name,
            connection.base_url,
            connection.methods,
            connection.at_once,
            dict.fromkeys(sorted(map(str.lower, connection.headers))),
            connection.shared_with,
            users.get(name, ()),
        )
        for name, connection in configured.items()
    ]
    for stored in await stores.list_stored_connections(database):
        if stored.name not in configured:
            usable = registry.connections.get(stored.name)
            problem = usable.problem if isinstance(usable, Unusable) else None
            details.append(_stored_detail(stored, users.get(stored.name, ()), problem))
    return sorted(details, key=lambda detail: detail.name)


async def list_shared_connections(
    database: Database, registry: Registry, person: str, trust: PeopleTrust
) -> list[ConnectionDetail]:
    """The connections that are shared with the person's groups, by name."""
    groups = await people_trust.read_groups(database, person, trust)
    return [
        one for one in await list_connections(database, registry) if groups & {*one.shared_with}
    ]


async def find_connection(database: Database, registry: Registry, name: str) -> ConnectionDetail:
    """The connection with this name; raises NotFoundError."""
    every = await list_connections(database, registry)
    for found in every:
        if found.name == name:
            return found
    raise no_such_connection(name, every)


async def change_connection(
    database: Database,
    registry: Registry,
    key: bytes,
    name: str,
    wanted: ConnectionInput,
    *,
    actor: str,
    now: int,
    write: Write,
) -> ConnectionDetail:
    """Create or change a connection; its secrets are encrypted with the key of the tokens.

    Raises InvalidItemsError, which contains no value, and ConflictError if it comes from the
    settings, if values to keep cannot be decrypted, or if there are too many.
    """
    _check_name(name, registry)
    work = partial(stores.store_connection, name=name, wanted=wanted, key=key, actor=actor, now=now)
    await write(work)
    registry.forget()
    connection_log.info("connection.put", connection=name, actor=actor)
    return await find_connection(database, registry, name)


async def delete_connection(registry: Registry, name: str, *, actor: str, write: Write) -> None:
    """Delete a connection.

    Raises NotFoundError, and ConflictError if it comes from the settings, or is in use.
    """
    _check_name(name, registry)

    def work(transaction: Transaction) -> StoredConnection:
        found = stores.read_connection(transaction, name)
        if found is None:
            raise no_such_connection(name, ())
        if users := [
            row[0] for row in transaction.all(_SOURCE_DOCUMENTS) if name in _connections_of_row(row)
        ]:
            unread = ConflictError(f"The connection {name} is used by {len(users)} data sources.")
            text = f"The connection {name} is used by {', '.join(users)}."
            raise ConflictError(text).unless_read(unread)
        stores.remove_connection(transaction, name)
        return found

    await write(work)
    registry.forget()
    connection_log.info("connection.deleted", connection=name, actor=actor)


def _check_name(name: str, registry: Registry) -> None:
    if name in registry.configured:
        raise ConflictError(f"The connection {name} comes from the settings: change it there.")


def no_such_connection(name: str, known: Iterable[ConnectionDetail]) -> NotFoundError:
    """The error for an unknown connection, with the names that the caller may see."""
    return no_such("connection", name, [one.name for one in known])


def _stored_detail(
    stored: StoredConnection, users: Sequence[str], problem: str | None
) -> ConnectionDetail:
    options = stored.options
    return ConnectionDetail(
        stored.name,
        options.base_url,
        options.methods,
        options.at_once,
        options.headers,
        options.shared_with,
        users,
        stored,
        problem,
    )


async def _sources_by_connection(database: Database) -> dict[str, list[str]]:
    """The ids of the custom sources that use each connection, by connection name."""
    found: dict[str, list[str]] = {}
    async for rows in database.pages(_SOURCE_DOCUMENTS, size=100):
        for row in rows:
            for name in _connections_of_row(row):
                found.setdefault(name, []).append(row[0])
    return found


def _connections_of_row(row: Row) -> set[str]:
    handlers = [
        _handler_decoder.decode(text).handler_definition for text in row[1:] if text is not None
    ]
    return {one.config.connection for one in handlers if one.type == "http"}


class _ConnectionConfig(msgspec.Struct):
    connection: str = ""


class _Handler(msgspec.Struct):
    type: str
    config: _ConnectionConfig


class _HandlerDocument(msgspec.Struct, rename="camel"):
    handler_definition: _Handler


_handler_decoder = msgspec.json.Decoder(_HandlerDocument)

_SOURCE_DOCUMENTS = "SELECT id, draft, published FROM data_sources ORDER BY id"
