"""The store of importers made by users, and their options as fields; secrets are encrypted.

As with connections, secrets can't be read again or redirected: values survive a change only while
their target hosts stay the same, and can be decrypted only for that importer and these hosts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from factbook.auth import encryption
from factbook.auth.encryption import NotOpenedError
from factbook.errors import ConfigurationError, ConflictError, InvalidItemsError, problem
from factbook.importers.importer import Importer, ImporterKind
from factbook.integrations import find_vendor
from factbook.integrations.integration import NOWHERE
from factbook.settings import option_tables
from factbook.storage import Database, Row, Transaction
from factbook.storage.database import fetch_counter, take_numbers

ACCOUNT: Final = "account"
INTEGRATION: Final = "integration"
_SECRET_START: Final = "Secret."  # noqa: S105 - how the description of one begins

FieldType = Literal["text", "number", "switch", "list"]
_FIELD_TYPES: Final[Mapping[Any, FieldType]] = {
    str: "text",
    int: "number",
    bool: "switch",
    list[str]: "list",
    tuple[str, ...]: "list",
}

MOST_IMPORTERS: Final = 100
_LONGEST_VALUE: Final = 16_000
_SECRETS_LABEL: Final = "importers"
_REVISION_COUNTER: Final = "importers"
_HAS_MOVED: Final = "has to be given again, because the host is another one"

# Makes an importer from a table of options; raises ConfigurationError.
MakeImporter = Callable[[Mapping[str, Any]], Importer]


class OptionField(NamedTuple):
    """An option: `path` is its name, behind `account.` if it is one of the account's."""

    path: str
    about: str
    type: FieldType
    default: Any
    is_secret: bool


def list_option_fields(kind: ImporterKind[Any]) -> list[OptionField]:
    """The options of a kind, its own before those of every kind, then those of the account.

    Account options are limited to those that an import needs. Only text, numbers, booleans and
    lists of text are included; other options can only be set in the settings.
    """
    found = [one for one in _list_fields(kind.options, "") if one.path != INTEGRATION]
    bases = kind.options.__mro__
    found.sort(
        key=lambda option: next(
            distance for distance, base in enumerate(bases) if option.path in base.__annotations__
        )
    )
    if kind.vendor:
        own = {
            one.path: one for one in _list_fields(find_vendor(kind.vendor).options, f"{ACCOUNT}.")
        }
        found += (own[f"{ACCOUNT}.{name}"] for name in kind.account_options)
    return found


def make_option_table(values: Mapping[str, Any]) -> dict[str, Any]:
    """The table of the settings that has these values, by path."""
    found: dict[str, Any] = {}
    for path, value in values.items():
        name, dot, option = path.partition(".")
        if dot:
            found.setdefault(name, {})[option] = value
        else:
            found[name] = value
    return found


def _list_fields(options: type[msgspec.Struct], prefix: str) -> list[OptionField]:
    hints = get_type_hints(options, include_extras=True)
    found = []
    for one in msgspec.structs.fields(options):
        type_, about = _split_hint(hints[one.name])
        if type_ in _FIELD_TYPES:
            default = None if one.default is msgspec.NODEFAULT else one.default
            secret = about.startswith(_SECRET_START)
            path = f"{prefix}{one.name}"
            found.append(OptionField(path, about, _FIELD_TYPES[type_], default, secret))
    return found


def _split_hint(hint: Any) -> tuple[Any, str]:
    """The type of an option without its bounds, and its description."""
    about = ""
    while get_origin(hint) is Annotated:
        texts = (getattr(meta, "description", None) for meta in hint.__metadata__)
        about = next(filter(None, texts), about)
        hint = get_args(hint)[0]
    if isinstance(hint, UnionType):
        [hint] = {one for one in get_args(hint) if one is not type(None)} or {None}
    origin = get_origin(hint)
    if origin in (list, tuple):
        return (list[str] if get_args(hint)[0] is str else hint), about
    return hint, about


@dataclass(frozen=True, kw_only=True)
class ImporterInput:
    """The requested form of an importer, options by path; a secret of None keeps its value.

    With `is_new`, an existing importer is not changed.
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


async def get_importers_revision(database: Database) -> int:
    """A number that rises with each change."""
    return await fetch_counter(database, _REVISION_COUNTER)


async def list_importer_rows(database: Database) -> list[Row]:
    """Every stored importer with its sealed secrets, for `stored` and `opened`."""
    return await database.all(_EVERY_IMPORTER)


async def get_stored_importer(database: Database, id_: str) -> StoredImporter | None:
    """The stored importer with this id."""
    row = await database.one(_ONE_IMPORTER, (id_,))
    return None if row is None else make_stored_importer(row)


def save_importer(
    transaction: Transaction,
    wanted: ImporterInput,
    key: bytes,
    make: MakeImporter,
    actor: str,
    now: int,
) -> StoredImporter:
    """Create or change an importer; a secret that is not named is removed.

    Raises InvalidItemsError, which contains no value, and ConflictError if there is a new one
    already, if values to keep cannot be decrypted, or if there are too many importers.
    """
    row = _lock_importer_row(transaction, wanted.id)
    if wanted.is_new and row is not None:
        raise ConflictError(f'"{wanted.id}" is the name of an importer that there is already.')
    if row is None and transaction.all(_IMPORTER_IDS)[MOST_IMPORTERS - 1 :]:
        raise ConflictError(f"There are already {MOST_IMPORTERS} importers, the maximum.")
    before = None if row is None else make_stored_importer(row)
    kept = _read_kept_secrets(wanted, row, key)
    given = {path: value for path, value in wanted.secrets.items() if value}
    long = [path for path, value in given.items() if len(value) > _LONGEST_VALUE]
    if long:
        raise InvalidItemsError([problem(p, f"is longer than {_LONGEST_VALUE}") for p in long])
    secrets = {**kept, **given}
    hosts = _list_secret_hosts(_try_importer(make, {**wanted.values, **secrets}))
    if before is not None and kept and hosts != before.options.hosts:
        raise InvalidItemsError([problem(path, _HAS_MOVED) for path in kept])
    times = {} if before is None else before.options.secrets
    set_at = {path: times[path] if path in kept else now for path in secrets}
    options = StoredOptions(dict(wanted.values), set_at, hosts)
    created = (now, actor) if before is None else (before.created_at, before.created_by)
    sealed = _seal_secrets(wanted.id, hosts, secrets, key)
    values = (
        wanted.id,
        wanted.kind,
        wanted.name,
        msgspec.json.encode(options).decode(),
        sealed,
        *created,
        now,
        actor,
    )
    transaction.run(_SAVE_IMPORTER, values)
    take_numbers(transaction, _REVISION_COUNTER)
    return make_stored_importer(values)


def remove_importer(transaction: Transaction, id_: str) -> StoredImporter | None:
    """Remove an importer; returns it, None if there is none."""
    row = _lock_importer_row(transaction, id_)
    if row is None:
        return None
    transaction.run("DELETE FROM importers WHERE id = ?", (id_,))
    take_numbers(transaction, _REVISION_COUNTER)
    return make_stored_importer(row)


def make_stored_importer(row: Row) -> StoredImporter:
    """The importer of a row, without its secrets."""
    id_, kind, name, options, _, *rest = row
    return StoredImporter(id_, kind, name, msgspec.json.decode(options, type=StoredOptions), *rest)


def open_importer(row: Row, key: bytes, make: MakeImporter) -> Importer:
    """The importer of a row with its secrets.

    Raises ConfigurationError for one that this release or these settings do not allow, and if its
    secrets were sealed under another key.
    """
    found = make_stored_importer(row)
    try:
        secrets = _open_secrets(row, key)
    except NotOpenedError:
        raise ConfigurationError(_explain_not_opened(found.id)) from None
    importer = make(make_option_table({**found.options.values, **secrets}))
    if secrets and _list_secret_hosts(importer) != found.options.hosts:
        raise ConfigurationError(f"The secrets of {found.id} were given for other hosts.")
    return importer


def opens_secrets(row: Row, key: bytes) -> bool:
    """True if the key opens the secrets of a row."""
    try:
        _open_secrets(row, key)
    except NotOpenedError:
        return False
    return True


def _read_kept_secrets(wanted: ImporterInput, row: Row | None, key: bytes) -> dict[str, str]:
    """The stored values of the secrets that keep theirs."""
    there = {} if row is None else make_stored_importer(row).options.secrets
    keeping = [path for path, value in wanted.secrets.items() if not value and path in there]
    if row is None or not keeping:
        return {}
    try:
        values = _open_secrets(row, key)
    except NotOpenedError:
        raise ConflictError(_explain_not_opened(wanted.id)) from None
    return {path: values[path] for path in keeping}


def _try_importer(make: MakeImporter, values: Mapping[str, Any]) -> Importer:
    try:
        return make(make_option_table(values))
    except ConfigurationError as error:
        # It begins with the name of the table.
        where, colon, what = error.message.partition(": ")
        raise InvalidItemsError([problem("", what if colon else where)]) from None


def _list_secret_hosts(importer: Importer) -> list[str]:
    """The hosts that the secrets of an importer are sent to."""
    addresses = {importer.integration.base_url, *importer.integration.further} - {NOWHERE}
    return sorted(map(option_tables.url_origin, addresses))


def _seal_secrets(
    id_: str, hosts: list[str], secrets: Mapping[str, str], key: bytes
) -> bytes | None:
    if not secrets:
        return None
    content = msgspec.json.encode(dict(secrets))
    return encryption.seal_secret(key, _SECRETS_LABEL, _join_context(id_, hosts), content)


def _open_secrets(row: Row, key: bytes) -> dict[str, str]:
    """The decrypted secrets by path; raises NotOpenedError."""
    if row[4] is None:
        return {}
    beside = _join_context(row[0], make_stored_importer(row).options.hosts)
    content = encryption.open_secret(key, _SECRETS_LABEL, beside, bytes(row[4]))
    return msgspec.json.decode(content, type=dict[str, str])


def _join_context(id_: str, hosts: list[str]) -> str:
    return " ".join((id_, *hosts))


def _explain_not_opened(id_: str) -> str:
    return (
        f"The secrets of the importer {id_} cannot be opened: they were sealed under another token "
        "key. Give their values again."
    )


def _lock_importer_row(transaction: Transaction, id_: str) -> Row | None:
    transaction.lock("importers")
    return transaction.one(_ONE_IMPORTER, (id_,))


_EVERY_IMPORTER: Final = """
SELECT id, kind, name, options, secrets, created_at, created_by, updated_at, updated_by
FROM importers ORDER BY id
"""

_ONE_IMPORTER: Final = _EVERY_IMPORTER.replace("ORDER BY id", "WHERE id = ?")

_IMPORTER_IDS: Final = "SELECT id FROM importers"

_SAVE_IMPORTER: Final = """
INSERT INTO importers (id, kind, name, options, secrets, created_at, created_by, updated_at,
    updated_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET options = excluded.options, secrets = excluded.secrets,
    updated_at = excluded.updated_at, updated_by = excluded.updated_by
"""
