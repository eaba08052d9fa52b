"""Loads the settings from a file, the environment and flags."""

import os
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, get_origin, get_type_hints

import msgspec

from factbook import text_files
from factbook.errors import ConfigurationError, in_words
from factbook.settings.table import Settings

# Settings that are tables, of which an option may be a variable too; how deep an option is.
TABLES: Final = {
    "integrations": 3,
    "importers": 3,
    "connections": 2,
    "openid": 1,
    "group_roles": 1,
    "oauth": 1,
}
_PREFIX: Final = "FACTBOOK_"
# What the commands that talk to a server read, beside the settings.
_OTHERS: Final = frozenset({"CONFIG", "SERVER", "TOKEN"})
# What Kubernetes sets in containers for a service named "factbook" or "factbook-…".
_SERVICE_LINK: Final = re.compile(
    r"(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP)(?:_\w+)?)?)"
)
# How alike two names are of which one is taken for a misspelling of the other.
_ALIKE: Final = 0.85


def load(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    path: Path = Path("factbook.toml"),
) -> Settings:
    """The settings in force.

    `FACTBOOK_CONFIG` names another file. Flags that are None count as not given. Raises
    ConfigurationError for an unknown name or a value of the wrong type, naming its origin.
    """
    values: dict[str, Any] = {}
    config = Path(environ.get("FACTBOOK_CONFIG", path))
    if config.exists():
        values |= _from_file(config)
    elif "FACTBOOK_CONFIG" in environ:
        raise ConfigurationError(f"FACTBOOK_CONFIG names {config}, which does not exist.")
    values |= _from_environment(environ, values)
    values |= {name: value for name, value in (flags or {}).items() if value is not None}
    return Settings(**values)


def unknown_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str | None]:
    """Variables of Factbook that are no setting, each with the variable that may be meant."""
    names = [name.upper() for name in Settings.__struct_fields__]
    tables = [name.upper() for name in TABLES]
    found: dict[str, str | None] = {}
    for variable in sorted(environ):
        name = variable.removeprefix(_PREFIX)
        table, between, options = name.partition("__")
        known = table in tables if between else name in names or name in _OTHERS
        if name == variable or known or _SERVICE_LINK.fullmatch(name):
            continue
        import difflib  # noqa: PLC0415 - rarely needed, and every start would pay for it

        near = difflib.get_close_matches(table, tables if between else names, 1, _ALIKE)
        found[variable] = f"{_PREFIX}{near[0]}{between}{options}" if near else None
    return found


def refuse_misspelled(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The variables of Factbook that are no setting.

    Raises ConfigurationError for those that look like a misspelled one, which the file refuses too.
    """
    unknown = unknown_variables(environ)
    if misspelled := [f"{name} ({meant}?)" for name, meant in unknown.items() if meant]:
        raise ConfigurationError(
            "The environment has variables that are no settings but look like some. Correct or "
            f"remove them: {', '.join(misspelled)}."
        )
    return list(unknown)


def environment(settings: Settings) -> dict[str, str]:
    """The settings as environment variables that `load` reads back to the same settings."""
    given = {name: getattr(settings, name) for name in Settings.__struct_fields__}
    return {
        f"FACTBOOK_{name.upper()}": _text(value)
        for name, value in given.items()
        if value is not None
    }


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else str(value)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(text_files.utf_8(path.read_bytes()).decode())
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is no TOMLDecodeError
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from None
    known = set(Settings.__struct_fields__)
    if unknown := sorted(set(found) - known):
        raise ConfigurationError(f"{path} has unknown settings: {', '.join(unknown)}.")
    return {name: _convert(name, value, str(path), strict=True) for name, value in found.items()}


def _from_environment(environ: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in Settings.__struct_fields__:
        variable = f"FACTBOOK_{name.upper()}"
        if variable in environ:
            found[name] = _convert(name, environ[variable], variable, strict=False)
    for name, depth in TABLES.items():
        whole = found.get(name, given.get(name, {}))
        if tables := _with_options(name, depth, environ, whole):
            found[name] = tables
    return found


def _with_options(
    setting: str, depth: int, environ: Mapping[str, str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Tables of a setting, including the options that have a variable of their own."""
    tables = _copied(given, depth)
    prefix = f"FACTBOOK_{setting.upper()}__"
    for variable, text in environ.items():
        if not variable.startswith(prefix):
            continue
        parts = variable.removeprefix(prefix).lower().split("__")
        if len(parts) != depth or not all(parts):
            first = "KIND" if setting == "importers" else "VENDOR"
            form = "__".join((first, "NAME", "OPTION")[-depth:])
            raise ConfigurationError(f"{variable} is not of the form {prefix}{form}.")
        table = tables
        for part in parts[:-1]:
            table = table.setdefault(part, {})
        table[parts[-1]] = text
    return tables


def _copied(tables: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth == 1:
        return dict(tables)
    return {name: _copied(table, depth - 1) for name, table in tables.items()}


def _json(text: str, origin: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigurationError(f"{origin} is not valid JSON: {error}") from None


def _convert(name: str, value: Any, origin: str, *, strict: bool) -> Any:
    type_ = _types()[name]
    if type_ in (list[str], list[str] | None) and isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if get_origin(type_) is dict and isinstance(value, str):
        value = _json(value, origin)
    try:
        return msgspec.convert(value, type_, strict=strict)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{name} from {origin}: {in_words(error, type_)}") from None


@cache
def _types() -> Mapping[str, Any]:
    return get_type_hints(Settings)
