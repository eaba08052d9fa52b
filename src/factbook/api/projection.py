"""The `fields` of a request: which parts of each entity are returned."""

from collections.abc import Iterable
from typing import Any, Self

import msgspec

from factbook.errors import InputError

_MISSING = object()


class Projection:
    """Keeps the named dotted paths of an entity; no paths keep all of it."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    @classmethod
    def of(cls, values: Iterable[str]) -> Self:
        """From `fields` parameters, each a comma-separated list; raises InputError for `[`."""
        paths = [path.strip() for value in values for path in value.split(",") if path.strip()]
        for path in paths:
            if "[" in path:
                raise InputError(f'fields are dotted paths without indexes, not "{path}".')
        return cls(paths)

    @property
    def keeps_all(self) -> bool:
        """Whether there is nothing to leave out."""
        return not self._paths

    def apply(self, entity: str) -> bytes:
        """An entity's JSON with only the parts that are asked for; missing ones are just absent."""
        if self.keeps_all:
            return entity.encode()
        whole = msgspec.json.decode(entity)
        kept: dict[str, Any] = {}
        for path in self._paths:
            _copy(whole, kept, path.split("."))
        return msgspec.json.encode(kept)


def _copy(source: Any, target: dict[str, Any], parts: list[str]) -> None:
    """Copy one path. A part that is missing is glued to the next: annotation keys hold dots."""
    for end in range(1, len(parts) + 1):
        key, rest = ".".join(parts[:end]), parts[end:]
        value = source.get(key, _MISSING) if isinstance(source, dict) else _MISSING
        if value is _MISSING:
            continue
        if not rest:
            target[key] = value
        elif isinstance(value, dict):
            child = target.setdefault(key, {})
            if child is not value:
                _copy(value, child, rest)
        return
