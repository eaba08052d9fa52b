"""Reading the table of one integration: `[integrations.<vendor>.<name>]` of the settings."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar, get_args, get_type_hints
from urllib.parse import urlsplit

import msgspec

from factbook.errors import ConfigurationError

Options = TypeVar("Options", bound=msgspec.Struct)

DEFAULT: Final = "default"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")


def read(vendor: str, name: str, values: Mapping[str, Any], type_: type[Options]) -> Options:
    """The options that a table of the settings gives; lists may be texts with commas.

    Raises ConfigurationError naming the instance and what is wrong, and never a value.
    """
    where = f"integrations.{vendor}.{name}"
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{where}: a name is of lower-case letters, digits, . _ and -.")
    try:
        return msgspec.convert(_with_lists(values, type_), type_, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where}: {error}.") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error.message}.") from None


def source_id(vendor: str, name: str) -> str:
    """The data source of an instance: `github` of the one named `default`, else `github-<name>`."""
    return vendor if name == DEFAULT else f"{vendor}-{name}"


def title(vendor_title: str, name: str) -> str:
    """The title of an instance's data source: `GitHub`, or `GitHub (internal)`."""
    return vendor_title if name == DEFAULT else f"{vendor_title} ({name})"


def origin(url: str) -> str:
    """Scheme and host of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _with_lists(values: Mapping[str, Any], type_: type[msgspec.Struct]) -> dict[str, Any]:
    """The values, with each list as one when it came from a variable as a text."""
    hints = get_type_hints(type_)
    return {
        key: _parts(value) if isinstance(value, str) and _is_list(hints.get(key)) else value
        for key, value in values.items()
    }


def _is_list(hint: Any) -> bool:
    return bool(get_args(hint)) and getattr(hint, "__origin__", None) is list


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
