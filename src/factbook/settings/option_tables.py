"""Parser for the settings of one integration: the table `[integrations.<vendor>.<name>]`."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from factbook.errors import ConfigurationError, in_words

Options = TypeVar("Options", bound=msgspec.Struct)

DEFAULT_INSTANCE: Final = "default"
# A host in the form that people and annotations use, with an optional port.
HOST_PATTERN: Final = re.compile(r"[a-z0-9.-]+(:\d{1,5})?")
# The name of an instance, or of a connection.
INSTANCE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")


def read_options(
    vendor: str, name: str, values: Mapping[str, Any], type_: type[Options]
) -> Options:
    """Read the options of an integration from a settings table.

    In strings, such as environment variables, lists are comma-separated and tables are JSON.
    Raises ConfigurationError naming the instance and the mistake, but never a value.
    """
    return read_option_table(f"integrations.{vendor}.{name}", name, values, type_)


def read_option_table(
    where: str, name: str, values: Mapping[str, Any], type_: type[Options]
) -> Options:
    """Like `read_options`, for a table elsewhere in the settings."""
    if not INSTANCE_NAME.fullmatch(name):
        raise ConfigurationError(f"{where}: a name is of lower-case letters, digits, . _ and -.")
    try:
        return msgspec.convert(_decode_texts(values, type_), type_, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where}: {in_words(error, type_)}.") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error.message}.") from None


def about(text: str) -> Meta:
    """Describe a setting, for the tables of settings in the docs."""
    return Meta(description=text)


def source_id(vendor: str, name: str) -> str:
    """Id of an instance's data source: `github` for instance `default`, else `github-<name>`."""
    return vendor if name == DEFAULT_INSTANCE else f"{vendor}-{name}"


def instance_title(vendor_title: str, name: str) -> str:
    """Title of an instance's data source: `GitHub`, or `GitHub (internal)`."""
    return vendor_title if name == DEFAULT_INSTANCE else f"{vendor_title} ({name})"


def url_origin(url: str) -> str:
    """Scheme and host of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def is_web_address(url: str) -> bool:
    """True for a web address without a user, query, fragment or spaces."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if set(url) & set("?# ") or not url.isprintable():
        return False
    return parts.scheme in {"https", "http"} and bool(parts.hostname) and "@" not in parts.netloc


def _decode_texts(values: Mapping[str, Any], type_: type[msgspec.Struct]) -> dict[str, Any]:
    """Decode lists and tables from the strings that environment variables contain."""
    hints = get_type_hints(type_)
    return {
        key: _decode_text(value, get_origin(hints.get(key))) if isinstance(value, str) else value
        for key, value in values.items()
    }


def _decode_text(text: str, type_: Any) -> Any:
    if type_ in (list, tuple):
        return [part.strip() for part in text.split(",") if part.strip()]
    if type_ is dict:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return text  # refused later, as it isn't a table
    return text
