"""The store of importers made at run time; their secrets are encrypted.

As of connections, nobody reads a secret again or redirects it: values survive a change only while
the hosts that they are sent to stay the same, and are decrypted only for that importer and these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from factbook.auth import encryption
from factbook.auth.encryption import NotOpenedError
from factbook.errors import ConfigurationError, ConflictError, InvalidItemsError, problem
from factbook.importers import option_fields
from factbook.importers.importer import Importer
from factbook.integrations.integration import NOWHERE
from factbook.settings import option_tables
from factbook.storage import Database, Row, Transaction, counters

MOST: Final = 100
_LONGEST_VALUE: Final = 16_000
_LABEL: Final = "importers"
_REVISION: Final = "importers"
_HAS_MOVED: Final = "has to be given again, because the host is another one"

# Makes the importer of a table of options; raises ConfigurationError.
Make = Callable[[Mapping[str, Any]], Importer]


@dataclass(frozen=True, kw_only=True)
class ImporterInput:
    """The requested form of an importer, options by path; a secret of None keeps its value.

    One that `is_new` changes none that there is already.
    """

    kind: str
    name: str
    is_new: bool = False
    values: Mapping[str, Any]
    secrets: Mapping[str, str | None] = field(default_factory=dict, repr=False)

    @property
    def id(self) -> str:
        """The id that its sets have."""
        return option_tables.source_id(self.kind, self.name)


class StoredOptions(msgspec.Struct, frozen=True):
    """Unencrypted options by path, the time at which each secret was set, and their hosts."""

    values: dict[str, Any]
    secrets: dict[str, int]
    hosts: list[str]


class StoredImporter(NamedTuple):
    """An importer without its secrets."""

    id: str
    kind: str
    name: str
    options: StoredOptions
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str


async def revision(database: Database) -> int:
    """A number that rises with each change."""
    return await counters.value(database, _REVISION)


async def rows(database: Database) -> list[Row]:
    """Every stored importer with its sealed secrets, for `stored` and `opened`."""
    return await database.all(_EVERY)


async def one(database: Database, id_: str) -> StoredImporter | None:
    """The stored importer with this id."""
    row = await database.one(_ONE, (id_,))
    return None if row is None else stored(row)


def put(
    transaction: Transaction, wanted: ImporterInput, key: bytes, make: Make, actor: str, now: int
) -> StoredImporter:
    """Create or change an importer; a secret that is not named is removed.

    Raises InvalidItemsError, which contains no value, and ConflictError if there is a new one
    already, if values to keep cannot be decrypted, or if there are too many importers.
    """
    row = _row(transaction, wanted.id)
    if wanted.is_new and row is not None:
        raise ConflictError(f'"{wanted.id}" is the name of an importer that there is already.')
    if row is None and transaction.all(_IDS)[MOST - 1 :]:
        raise ConflictError(f"There are already {MOST} importers, the maximum.")
    before = None if row is None else stored(row)
    kept = _kept(wanted, row, key)
    given = {path: value for path, value in wanted.secrets.items() if value}
    _check_lengths(given)
    secrets = {**kept, **given}
    hosts = _hosts(_made(make, {**wanted.values, **secrets}))
    if before is not None and kept and hosts != before.options.hosts:
        raise InvalidItemsError([problem(path, _HAS_MOVED) for path in kept])
    times = {} if before is None else before.options.secrets
    set_at = {path: times[path] if path in kept else now for path in secrets}
    options = StoredOptions(dict(wanted.values), set_at, hosts)
    created = (now, actor) if before is None else (before.created_at, before.created_by)
    sealed = _sealed(wanted.id, hosts, secrets, key)
    values = (wanted.id, wanted.kind, wanted.name, _json(options), sealed, *created, now, actor)
    transaction.run(_PUT, values)
    counters.take(transaction, _REVISION)
    return stored(values)


def remove(transaction: Transaction, id_: str) -> StoredImporter | None:
    """Remove an importer; returns it, None if there is none."""
    row = _row(transaction, id_)
    if row is None:
        return None
    transaction.run("DELETE FROM importers WHERE id = ?", (id_,))
    counters.take(transaction, _REVISION)
    return stored(row)


def stored(row: Row) -> StoredImporter:
    """The importer of a row, without its secrets."""
    id_, kind, name, options, _, *rest = row
    return StoredImporter(id_, kind, name, msgspec.json.decode(options, type=StoredOptions), *rest)


def opened(row: Row, key: bytes, make: Make) -> Importer:
    """The importer of a row with its secrets.

    Raises ConfigurationError for one that this release or these settings do not allow, and if its
    secrets were sealed under another key.
    """
    found = stored(row)
    try:
        secrets = _secrets(row, key)
    except NotOpenedError:
        raise ConfigurationError(_not_opened(found.id)) from None
    importer = make(option_fields.table({**found.options.values, **secrets}))
    if secrets and _hosts(importer) != found.options.hosts:
        raise ConfigurationError(f"The secrets of {found.id} were given for other hosts.")
    return importer


def fits(row: Row, key: bytes) -> bool:
    """True if the key opens the secrets of a row."""
    try:
        _secrets(row, key)
    except NotOpenedError:
        return False
    return True


def _kept(wanted: ImporterInput, row: Row | None, key: bytes) -> dict[str, str]:
    """The stored values of the secrets that keep theirs."""
    there = {} if row is None else stored(row).options.secrets
    keeping = [path for path, value in wanted.secrets.items() if not value and path in there]
    if row is None or not keeping:
        return {}
    try:
        values = _secrets(row, key)
    except NotOpenedError:
        raise ConflictError(_not_opened(wanted.id)) from None
    return {path: values[path] for path in keeping}


def _check_lengths(secrets: Mapping[str, str]) -> None:
    long = [path for path, value in secrets.items() if len(value) > _LONGEST_VALUE]
    if long:
        raise InvalidItemsError([problem(p, f"is longer than {_LONGEST_VALUE}") for p in long])


def _made(make: Make, values: Mapping[str, Any]) -> Importer:
    try:
        return make(option_fields.table(values))
    except ConfigurationError as error:
        # It begins with the name of the table.
        where, colon, what = error.message.partition(": ")
        raise InvalidItemsError([problem("", what if colon else where)]) from None


def _hosts(importer: Importer) -> list[str]:
    """The hosts that the secrets of an importer are sent to."""
    addresses = {importer.integration.base_url, *importer.integration.further} - {NOWHERE}
    return sorted(map(option_tables.url_origin, addresses))


def _sealed(id_: str, hosts: list[str], secrets: Mapping[str, str], key: bytes) -> bytes | None:
    if not secrets:
        return None
    content = msgspec.json.encode(dict(secrets))
    return encryption.seal(key, _LABEL, _beside(id_, hosts), content)


def _secrets(row: Row, key: bytes) -> dict[str, str]:
    """The decrypted secrets by path; raises NotOpenedError."""
    if row[4] is None:
        return {}
    beside = _beside(row[0], stored(row).options.hosts)
    content = encryption.opened(key, _LABEL, beside, bytes(row[4]))
    return msgspec.json.decode(content, type=dict[str, str])


def _beside(id_: str, hosts: list[str]) -> str:
    return " ".join((id_, *hosts))


def _not_opened(id_: str) -> str:
    return (
        f"The secrets of the importer {id_} cannot be opened: they were sealed under another token "
        "key. Give their values again."
    )


def _row(transaction: Transaction, id_: str) -> Row | None:
    transaction.lock("importers")
    return transaction.one(_ONE, (id_,))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


_EVERY: Final = """
SELECT id, kind, name, options, secrets, created_at, created_by, updated_at, updated_by
FROM importers ORDER BY id
"""

_ONE: Final = _EVERY.replace("ORDER BY id", "WHERE id = ?")

_IDS: Final = "SELECT id FROM importers"

_PUT: Final = """
INSERT INTO importers (id, kind, name, options, secrets, created_at, created_by, updated_at,
    updated_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET options = excluded.options, secrets = excluded.secrets,
    updated_at = excluded.updated_at, updated_by = excluded.updated_by
"""
