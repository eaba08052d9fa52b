"""Options of a kind of importer as fields that people fill in, those of its account included."""

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from factbook.importers.importer import ImporterKind
from factbook.integrations import vendor

ACCOUNT: Final = "account"
INTEGRATION: Final = "integration"
_SECRET: Final = "Secret."  # noqa: S105 - how the description of one begins

FieldType = Literal["text", "number", "switch", "list"]
_TYPES: Final[Mapping[Any, FieldType]] = {
    str: "text",
    int: "number",
    bool: "switch",
    list[str]: "list",
    tuple[str, ...]: "list",
}


class OptionField(NamedTuple):
    """An option: `path` is its name, behind `account.` if it is one of the account's."""

    path: str
    about: str
    type: FieldType
    default: Any
    is_secret: bool


def fields(kind: ImporterKind[Any]) -> list[OptionField]:
    """The options of a kind, its own before those of every kind, then those of the account.

    Of the account they are what an import needs. Options of other types than text, numbers,
    switches and lists of text are left to the settings.
    """
    found = [one for one in _of(kind.options, "") if one.path != INTEGRATION]
    found.sort(key=lambda one: _generality(kind.options, one.path))
    if kind.vendor:
        own = {one.path: one for one in _of(vendor(kind.vendor).options, f"{ACCOUNT}.")}
        found += (own[f"{ACCOUNT}.{name}"] for name in kind.account_options)
    return found


def table(values: Mapping[str, Any]) -> dict[str, Any]:
    """The table of the settings that has these values, by path."""
    found: dict[str, Any] = {}
    for path, value in values.items():
        name, dot, option = path.partition(".")
        if dot:
            found.setdefault(name, {})[option] = value
        else:
            found[name] = value
    return found


def _of(options: type[msgspec.Struct], prefix: str) -> list[OptionField]:
    hints = get_type_hints(options, include_extras=True)
    found = []
    for one in msgspec.structs.fields(options):
        type_, about = _described(hints[one.name])
        if type_ in _TYPES:
            default = None if one.default is msgspec.NODEFAULT else one.default
            secret = about.startswith(_SECRET)
            path = f"{prefix}{one.name}"
            found.append(OptionField(path, about, _TYPES[type_], default, secret))
    return found


def _generality(options: type[msgspec.Struct], name: str) -> int:
    """The distance from a type of options up to the one that declares an option."""
    declaring = (at for at, one in enumerate(options.__mro__) if name in one.__annotations__)
    return next(declaring)


def _described(hint: Any) -> tuple[Any, str]:
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
