"""Placeholders: `{$text: FILE}`, `{$json: FILE}` and `{$yaml: FILE}` in an entity.

A mapping with one key is a placeholder if that is one of the known names; another one with a key
that begins with a dollar stays as it is, as it does in Backstage, and so does anything else. What a
file brings is not looked through again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import yaml

from factbook import text_files
from factbook.importers.catalog_info.documents import ReadingBudget, count, only_value
from factbook.importers.catalog_info.locations import FileLocation
from factbook.outbound.outcomes import Missing, Outcome

# The value for the name and the target of a placeholder.
Content = Callable[[str, str], Any]

# In the place of a placeholder that cannot be replaced.
LEFT_OUT: Final = object()
_LONGEST_SHOWN: Final = 200


class PlaceholderError(Exception):
    """A placeholder that cannot be replaced; the message says why.

    `passing`: another reading may replace it.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


def targets(value: Any) -> Iterator[str]:
    """Every file that placeholders in a value name; those of another form name none."""
    layer = [value]
    while layer:
        item = layer.pop()
        try:
            found = _placeholder(item)
        except PlaceholderError:
            continue  # reported when the placeholders are replaced
        if found is not None:
            yield found[1]
        else:
            layer += _inside(item)


class FileValues:
    """The values of placeholders. Each file is read once; all use of it counts towards a budget.

    `content` gives a file, or the reason that there is none.
    """

    def __init__(
        self, content: Callable[[FileLocation], bytes | Missing], budget: ReadingBudget
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
            if isinstance(data, Missing):
                text = f"{shown(target)}: {cause(data)}"
                raise PlaceholderError(text, passing=data.passing)
            try:
                value = _READ[name](text_files.utf_8(data))
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


def replaced(value: Any, content: Content, failed: Callable[[PlaceholderError], None]) -> Any:
    """The value with its placeholders replaced by what `content` gives for their name and target.

    `failed` is called for those that cannot be replaced, which are left out: the result is LEFT_OUT
    where the value is one. A part without placeholders is returned as it is, not as a copy. Raises
    what `content` raises, but for PlaceholderError.
    """
    try:
        if (found := _placeholder(value)) is not None:
            return content(*found)
    except PlaceholderError as error:
        failed(error)
        return LEFT_OUT
    if isinstance(value, dict):
        if _has_dollar(value):
            return value
        members = {key: replaced(inner, content, failed) for key, inner in value.items()}
        if all(members[key] is inner for key, inner in value.items()):
            return value
        return {key: inner for key, inner in members.items() if inner is not LEFT_OUT}
    if isinstance(value, list):
        items = [replaced(inner, content, failed) for inner in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return [inner for inner in items if inner is not LEFT_OUT]
    return value


def cause(missing: Missing) -> str:
    """The reason for a file that was not read, for people."""
    return "there is no such file" if missing.outcome is Outcome.NOT_FOUND else missing.reason


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
