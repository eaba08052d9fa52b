"""Placeholders: `{$text: FILE}`, `{$json: FILE}` and `{$yaml: FILE}` in an entity.

A mapping with one key is a placeholder if that is one of the known names; another one with a key
that begins with a dollar stays as it is, as it does in Backstage, and so does anything else. What a
file brings is not looked through again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import yaml

from factbook.importers.catalog_info.documents import ReadingBudget, count, only_value
from factbook.importers.catalog_info.locations import FileLocation

# The value for the name and the target of a placeholder.
Content = Callable[[str, str], Any]

_LONGEST_SHOWN: Final = 200


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


class FileValues:
    """The values of placeholders. Each file is read once; all use of it counts towards a budget.

    `content` gives a file, or the reason that there is none.
    """

    def __init__(
        self, content: Callable[[FileLocation], bytes | str], budget: ReadingBudget
    ) -> None:
        self._content = content
        self._budget = budget
        self._read: dict[tuple[str, FileLocation], tuple[Any, int, int]] = {}

    def value(self, name: str, target: str, location: FileLocation) -> Any:
        """The value of a file by the name of a placeholder.

        Raises PlaceholderError for a file that cannot be read so, and OverBudgetError.
        """
        key = name, location
        if key not in self._read:
            data = self._content(location)
            if isinstance(data, str):
                raise PlaceholderError(f"{shown(target)}: {data}")
            try:
                value = _READ[name](data)
            except (ValueError, RecursionError, yaml.YAMLError) as error:
                text = " ".join(str(error).split())
                raise PlaceholderError(
                    f"{shown(target)} cannot be read as {name[1:]}: {text}"
                ) from None
            self._read[key] = value, len(data), count(value)
        value, size, parts = self._read[key]
        self._budget.spend("bytes", size)
        self._budget.spend("parts", parts)
        return value


def replaced(value: Any, content: Content) -> Any:
    """The value with its placeholders replaced by what `content` gives for their name and target.

    A part without placeholders is returned as it is, not as a copy. Raises PlaceholderError for a
    malformed placeholder, and whatever `content` raises.
    """
    found = _placeholder(value)
    if found is not None:
        return content(*found)
    if isinstance(value, dict):
        if _has_dollar(value):
            return value
        members = {key: replaced(inner, content) for key, inner in value.items()}
        return members if any(members[key] is not value[key] for key in value) else value
    if isinstance(value, list):
        items = [replaced(inner, content) for inner in value]
        return (
            items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        )
    return value


def shown(target: str) -> str:
    """A target as messages name it."""
    return target if len(target) <= _LONGEST_SHOWN else f"{target[:_LONGEST_SHOWN]}…"


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
