"""The key of tokens and secrets: present, private, and the one used by the database."""

import asyncio
from pathlib import Path
from typing import Final

from factbook.auth import encryption, tokens
from factbook.auth.encryption import NotOpenedError
from factbook.datasources import connection_store
from factbook.datasources.custom import Unusable
from factbook.errors import ConfigurationError
from factbook.importers import importer_store
from factbook.operations.doctor.findings import Finding, ok, problem
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.database_url import sqlite_path
from factbook.webhooks import digests, store

TOPIC: Final = "key"
_RESTORE: Final = "Put the key back that the database was written with, from the backup."


def read(settings: Settings) -> tuple[bytes | None, Finding]:
    """The key in force, None without one; never creates it."""
    file: Path | None = None
    if settings.token_key is None and settings.database_url.startswith("sqlite:"):
        database = sqlite_path(settings.database_url)
        file = database.with_name(f"{database.name}.key")
        if not file.exists():
            if database.exists():
                what = f"There is no key file {file}, so no token that was made before works."
                return None, problem(TOPIC, what, _RESTORE)
            return None, ok(TOPIC, "There is no key yet: `factbook serve` makes one.")
    try:
        key = encryption.make_token_key(settings.token_key, file)
    except ConfigurationError as error:
        return None, problem(TOPIC, error.message, "The service does not start without it.")
    where = "token_key of the settings" if file is None else f"{file}, which is private"
    return key, ok(TOPIC, f"The key is {where}.")


async def fits(database: Database, key: bytes) -> Finding:
    """Check that the key opens the sealed secrets of the database."""
    kept = await connection_store.usable(database, lambda: key)
    shut = [f"connection {name}" for name, one in kept.items() if isinstance(one, Unusable)]
    hooks = await store.list_sealed_targets(database)
    for id_, sealed in hooks.items():
        try:
            await asyncio.to_thread(store.open_target, key, id_, sealed)
        except NotOpenedError:
            shut.append(f"webhook {id_}")
    sent = await digests.list_sealed_addresses(database)
    for id_, address in sent.items():
        try:
            await asyncio.to_thread(digests.open_digest_address, key, id_, address)
        except NotOpenedError:
            shut.append(f"digest {id_}")
    rows = [row for row in await importer_store.list_importer_rows(database) if row[4] is not None]
    shut += [f"importer {row[0]}" for row in rows if not importer_store.opens_secrets(row, key)]
    if shut:
        what = f"Sealed under another key: {', '.join(shut)}. Tokens made then do not work either."
        return problem(TOPIC, what, _RESTORE)
    count = len(kept) + len(hooks) + len(sent) + len(rows)
    if count:
        return ok(TOPIC, f"It opens the {count} sealed secrets of the database.")
    return await _untried(database)


async def _untried(database: Database) -> Finding:
    made, used = await tokens.count_used_tokens(database)
    if made and not used:
        what = f"Nothing is sealed to try it on, and none of {made} tokens was ever used."
        return ok(TOPIC, what)
    return ok(TOPIC, "Nothing is sealed in the database that it could be tried on.")
