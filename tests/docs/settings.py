"""The settings, and the options of those that are tables, as tables of the documentation."""

from typing import Any, get_origin, get_type_hints

import msgspec

from factbook.importers import registry
from factbook.importers.registry import KINDS
from factbook.settings import Settings
from tests.docs.tables import code, table


def settings() -> str:
    """Every setting."""
    columns = ("Setting", "Environment variable", "Type", "Default", "Meaning")
    hints = get_type_hints(Settings, include_extras=True)
    return table(
        columns,
        [
            (
                code(field.name),
                code(f"FACTBOOK_{field.name.upper()}"),
                type_words(get_type_hints(Settings)[field.name]),
                default_words(field),
                hints[field.name].__metadata__[0].description,
            )
            for field in msgspec.structs.fields(Settings)
        ],
    )


def type_words(type_: Any) -> str:
    """A setting's type as people say it."""
    words = {str: "text", str | None: "text", int: "whole number", float: "number"}
    words[bool] = "true or false"
    if type_ in (list[str], list[str] | None, tuple[str, ...]):
        return "list of text"
    if get_origin(type_) is dict:
        return "tables"
    return words.get(type_) or " or ".join(code(choice) for choice in type_.__args__)


def default_words(field: msgspec.structs.FieldInfo) -> str:
    """A setting's default as people say it."""
    if field.default_factory is not msgspec.NODEFAULT:
        return "empty"
    return "not set" if field.default is None else code(field.default)


def options(type_: type[msgspec.Struct]) -> str:
    """Every option of a table of the settings."""
    hints = get_type_hints(type_, include_extras=True)
    types = get_type_hints(type_)
    return table(
        ("Setting", "Type", "Default", "Meaning"),
        [
            (
                code(field.name),
                type_words(types[field.name]),
                _default(field),
                hints[field.name].__metadata__[0].description,
            )
            for field in msgspec.structs.fields(type_)
        ],
    )


def importers() -> str:
    """Every option of the importers, by kind."""
    return "\n\n".join(
        f"### `[importers.{kind.id}.NAME]`\n\n{kind.title}: {kind.brings}\n\n"
        f"{options(registry.get_kind(kind.id).options)}"
        for kind in KINDS
    )


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default in {"", msgspec.NODEFAULT}:
        return "empty"
    if isinstance(field.default, tuple):
        return ", ".join(map(code, field.default)) or "empty"
    return code(str(field.default).lower() if isinstance(field.default, bool) else field.default)
