"""Importers that people make, change and delete while the service runs."""

from typing import Any, Final

import structlog

from factbook.datasources import memory
from factbook.errors import (
    ConfigurationError,
    ConflictError,
    InvalidItemsError,
    NotFoundError,
    no_such,
    problem,
    suggestion,
)
from factbook.importers import configuration, hint_store, importer_store, run_store
from factbook.importers.importer import NEVER, ImporterKind
from factbook.importers.importer_store import ImporterInput, StoredImporter
from factbook.importers.kinds import KINDS, KindSummary
from factbook.importers.registry import ImporterRegistry
from factbook.importers.snapshot import PREFIX
from factbook.storage import Transaction, Write

log = structlog.get_logger("factbook.importing")

_OF_SETTINGS: Final = "The importer {} comes from the settings: change it there."


def kinds() -> list[KindSummary]:
    """The kinds that people may make importers of."""
    return [one for one in KINDS if configuration.kind(one.id).by_people]


def kind(id_: str) -> ImporterKind[Any]:
    """The kind with this id, if people may make importers of it; raises NotFoundError."""
    try:
        found = configuration.kind(id_)
    except ConfigurationError:
        found = None
    if found is None or not found.by_people:
        known = suggestion(id_, (one.id for one in kinds()))
        raise NotFoundError(f'There is no importer of the kind "{id_}" to make here.{known}')
    return found


async def put(
    registry: ImporterRegistry,
    wanted: ImporterInput,
    key: bytes,
    *,
    actor: str,
    now: int,
    write: Write,
) -> StoredImporter:
    """Create or change an importer; its secrets are encrypted with the key of the tokens.

    One that is changed is run soon, unless it only runs when asked.
    Raises NotFoundError for a kind that there is not, InvalidItemsError, which contains no value,
    and ConflictError if it comes from the settings, if a new one is there already, if values to
    keep cannot be decrypted, or if there are too many.
    """
    kind(wanted.kind)
    if wanted.id in registry.configured:
        raise ConflictError(_OF_SETTINGS.format(wanted.id))
    stored = registry.stored.get(wanted.id)
    if stored is not None and (stored.kind, stored.name) != (wanted.kind, wanted.name):
        raise InvalidItemsError([problem("name", "is the id of another importer")])
    make = registry.maker(wanted.kind, wanted.name)

    def work(transaction: Transaction) -> StoredImporter:
        found = importer_store.put(transaction, wanted, key, make, actor, now)
        # One that is new is due by its cadence.
        if not wanted.is_new and wanted.values.get("every") != NEVER:
            run_store.ask(transaction, found.id, now)
        return found

    found = await write(work)
    registry.forget()
    log.info("importer.put", importer=found.id, actor=actor)
    return found


async def delete(registry: ImporterRegistry, id_: str, *, actor: str, write: Write) -> None:
    """Delete an importer, its runs, its hints and what it remembers; its entities stay.

    Raises NotFoundError, and ConflictError if it comes from the settings.
    """
    if id_ in registry.configured:
        raise ConflictError(_OF_SETTINGS.format(id_))

    def work(transaction: Transaction) -> StoredImporter:
        found = importer_store.remove(transaction, id_)
        if found is None:
            raise no_such("importer", id_, registry.stored)
        run_store.forget(transaction, id_)
        hint_store.forget(transaction, id_)
        memory.forget_source(transaction, f"{PREFIX}{id_}")
        return found

    await write(work)
    registry.forget()
    log.info("importer.deleted", importer=id_, actor=actor)
