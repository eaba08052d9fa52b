"""Placeholders: `{$text: FILE}`, `{$json: FILE}` and `{$yaml: FILE}` in an entity.

A mapping with one key is a placeholder if that is one of the known names; another one with a key
that begins with a dollar stays as it is, as it does in Backstage, and so does anything else. What a
file brings is not looked through again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import yaml

from factbook.importers.catalog_info.documents import only_value


class PlaceholderError(Exception):
    """A placeholder that cannot be replaced; the message says why."""


def targets(value: Any) -> Iterator[str]:
    """Every file that placeholders in a value name; raises PlaceholderError for another form."""
    layer = [value]
    while layer:
        item = layer.pop()
        found = _placeholder(item)
        if found is not None:
            yield found[1]
        else:
            layer += _inside(item)


def replaced(value: Any, content: Callable[[str], bytes]) -> Any:
    """The value with its placeholders replaced; raises PlaceholderError, as `content` may."""
    found = _placeholder(value)
    if found is not None:
        name, target = found
        try:
            return _READ[name](content(target))
        except (ValueError, RecursionError, yaml.YAMLError) as error:
            text = " ".join(str(error).split())
            raise PlaceholderError(f"{target} cannot be read as {name[1:]}: {text}") from None
    if isinstance(value, dict) and not _has_dollar(value):
        return {key: replaced(inner, content) for key, inner in value.items()}
    if isinstance(value, list):
        return [replaced(inner, content) for inner in value]
    return value


def _inside(value: Any) -> Iterable[Any]:
    """The values in which there may be placeholders."""
    if isinstance(value, dict):
        return () if _has_dollar(value) else value.values()
    return value if isinstance(value, list) else ()


def _has_dollar(value: dict[str, Any]) -> bool:
    return any(key.startswith("$") for key in value)


def _placeholder(value: Any) -> tuple[str, str] | None:
    """The name and the target of a placeholder; None for anything else."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    [(name, target)] = value.items()
    if name not in _READ:
        return None
    if not isinstance(target, str):
        raise PlaceholderError(f"{name} has to name a file")
    return name, target


def _text(data: bytes) -> str:
    return data.decode()


_READ: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "$text": _text,
    "$json": msgspec.json.decode,
    "$yaml": only_value,
    # Their files may refer to others, which readers of the text resolve.
    "$openapi": _text,
    "$asyncapi": _text,
}
