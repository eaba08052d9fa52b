"""Definition of data sources, for every interface that offers it.

Functions that write take `write`, which runs a function in a transaction and can, for example,
record the audit log in it.
"""

import asyncio
from functools import partial
from typing import Any

import structlog

from factbook import invisible
from factbook.datasources.custom import CustomSourceDefinition, validation
from factbook.datasources.registry import Registry
from factbook.datasources.source_store import StoredSource, source_store
from factbook.definitions import documents
from factbook.errors import ConflictError, InvalidItemsError, no_such
from factbook.facts import retention
from factbook.facts.datasource import DataSource
from factbook.integrations import VENDORS
from factbook.storage import Database, Transaction, Write

log = structlog.get_logger("factbook.data_sources")

Document = dict[str, Any]


async def read(
    document: Document, registry: Registry, max_depth: int, source_id: str | None = None
) -> CustomSourceDefinition:
    """The definition in a document.

    Raises the errors of `documents.read`, and ConflictError for the id of a builtin source.
    """
    found = await documents.read(document, _parse, max_depth, source_id)
    check_custom(document["id"], registry)
    return found


def _parse(document: Document) -> CustomSourceDefinition:
    schema = document.get("schema")
    unseen = [
        {"path": f"schema.{name}", "message": "has an invisible character"}
        for name in (schema if isinstance(schema, dict) else ())
        if invisible.has(name)
    ]
    try:
        found = validation.read(document)
    except InvalidItemsError as error:
        raise error.after(unseen) from None
    if unseen:
        raise InvalidItemsError(unseen)
    return found


def check_custom(source_id: str, registry: Registry) -> None:
    """Raise ConflictError if this is the id of a builtin source."""
    if source_id in registry.fixed.sources:
        raise ConflictError(f"{source_id} is a built-in data source and cannot be changed.")
    if source_id in VENDORS:
        raise ConflictError(f"{source_id} is the id of a built-in data source; choose another one.")


async def known(registry: Registry, source_id: str) -> DataSource:
    """The source with this id, builtin or custom, as it is at this moment; raises NotFoundError."""
    sources = (await registry.latest()).sources
    source = sources.get(source_id)
    if source is None:
        raise no_such("data source", source_id, sources)
    return source


async def problem(registry: Registry, stored: StoredSource) -> str | None:
    """The reason why a stored source cannot be collected on this server; None if it can."""
    await registry.latest()
    return await asyncio.to_thread(registry.problem, stored)


async def create(
    registry: Registry, document: Document, *, actor: str, now: int, write: Write
) -> StoredSource:
    """Store a checked document as a new draft; raises ConflictError if it is not new."""
    work = partial(source_store.create, document=document, actor=actor, now=now)
    stored = await write(work)
    return _noted("created", stored, registry, actor)


async def replace(
    registry: Registry, document: Document, *, actor: str, now: int, write: Write
) -> StoredSource:
    """Make a checked document the draft of its source, which is created if missing.

    An equal document changes nothing.
    """
    work = partial(source_store.put, document=document, actor=actor, now=now)
    stored = await write(work)
    return _noted("replaced", stored, registry, actor)


async def publish(
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
    check_custom(source_id, registry)
    await source_store.existing(database, source_id)
    work = partial(source_store.publish, id_=source_id, actor=actor, now=now, force=force)
    stored = await write(work)
    return _noted("published", stored, registry, actor)


async def delete(
    database: Database,
    registry: Registry,
    source_id: str,
    *,
    actor: str,
    write: Write,
    drop: Write | None = None,
) -> None:
    """Delete a source with its facts, their history and its runs.

    The history goes before, by transactions of `drop`. Raises NotFoundError, and ConflictError for
    a builtin source.
    """
    check_custom(source_id, registry)
    await source_store.existing(database, source_id)
    # What is large goes in portions, and first: what is left of it can be deleted again.
    await retention.drop_history(database, source_id, drop or database.write)

    def work(transaction: Transaction) -> None:
        if not source_store.delete(transaction, source_id):
            raise source_store.missing(transaction, source_id)

    await write(work)
    registry.forget()
    log.info("data_source.deleted", source=source_id, actor=actor)


def _noted(event: str, stored: StoredSource, registry: Registry, actor: str) -> StoredSource:
    registry.forget()
    log.info(f"data_source.{event}", source=stored.id, version=stored.version, actor=actor)
    return stored
