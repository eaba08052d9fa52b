"""Connections as shown and changed by every interface; `write` is as in `define`."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import structlog

from factbook.catalog import people_trust
from factbook.catalog.people_trust import PeopleTrust
from factbook.datasources import connection_store
from factbook.datasources.connection_store import ConnectionInput, StoredConnection
from factbook.datasources.custom.connections import SourceConnection, Unusable
from factbook.datasources.registry import Registry
from factbook.errors import ConflictError, NotFoundError, no_such
from factbook.storage import Database, Row, Transaction, Write

log = structlog.get_logger("factbook.connections")


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
    found = [_configured_detail(name, one, users.get(name, ())) for name, one in configured.items()]
    for stored in await connection_store.list_stored_connections(database):
        if stored.name not in configured:
            usable = registry.connections.get(stored.name)
            problem = usable.problem if isinstance(usable, Unusable) else None
            found.append(_stored_detail(stored, users.get(stored.name, ()), problem))
    return sorted(found, key=lambda one: one.name)


async def list_shared_connections(
    database: Database, registry: Registry, person: str, trust: PeopleTrust
) -> list[ConnectionDetail]:
    """The connections that are shared with groups of the person, by name."""
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
    work = partial(
        connection_store.store_connection, name=name, wanted=wanted, key=key, actor=actor, now=now
    )
    await write(work)
    registry.forget()
    log.info("connection.put", connection=name, actor=actor)
    return await find_connection(database, registry, name)


async def delete_connection(registry: Registry, name: str, *, actor: str, write: Write) -> None:
    """Delete a connection.

    Raises NotFoundError, and ConflictError if it comes from the settings, or is in use.
    """
    _check_name(name, registry)

    def work(transaction: Transaction) -> StoredConnection:
        found = connection_store.read_connection(transaction, name)
        if found is None:
            raise no_such_connection(name, ())
        if users := _sources_of_connection(transaction, name):
            unread = ConflictError(f"The connection {name} is used by {len(users)} data sources.")
            text = f"The connection {name} is used by {', '.join(users)}."
            raise ConflictError(text).unless_read(unread)
        connection_store.remove_connection(transaction, name)
        return found

    await write(work)
    registry.forget()
    log.info("connection.deleted", connection=name, actor=actor)


def _check_name(name: str, registry: Registry) -> None:
    if name in registry.configured:
        raise ConflictError(f"The connection {name} comes from the settings: change it there.")


def no_such_connection(name: str, known: Iterable[ConnectionDetail]) -> NotFoundError:
    """The error for an unknown connection, with the names of those that the caller may see."""
    return no_such("connection", name, [one.name for one in known])


def _configured_detail(name: str, one: SourceConnection, users: Sequence[str]) -> ConnectionDetail:
    headers = dict.fromkeys(sorted(map(str.lower, one.headers)))
    return ConnectionDetail(
        name, one.base_url, one.methods, one.at_once, headers, one.shared_with, users
    )


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


def _sources_of_connection(transaction: Transaction, name: str) -> list[str]:
    """The ids of the custom sources that use the connection."""
    return [
        row[0] for row in transaction.all(_SOURCE_DOCUMENTS) if name in _connections_of_row(row)
    ]


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
