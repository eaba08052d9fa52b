"""The `fields` of a request: which parts of each entity are returned."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import msgspec

from factbook.errors import InputError

_MISSING = object()
_MOST = 200


class Projection:
    """Keeps the named dotted paths of an entity; no paths keep all of it."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    @classmethod
    def of(cls, values: Iterable[str]) -> Self:
        """From `fields` parameters, each a comma-separated list; raises InputError for `[`."""
        paths = [path.strip() for value in values for path in value.split(",") if path.strip()]
        if len(paths) > _MOST:
            raise InputError(f"fields can name {_MOST} paths at most.")
        for path in paths:
            if "[" in path:
                raise InputError(f'fields are dotted paths without indexes, not "{path}".')
        return cls(paths)

    @property
    def keeps_all(self) -> bool:
        """True if there is nothing to leave out."""
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


def array(entities: Sequence[str], projection: Projection) -> bytes:
    """Rendered entities as a JSON array."""
    if projection.keeps_all:
        return f"[{','.join(entities)}]".encode()
    return b"[" + b",".join([projection.apply(entity) for entity in entities]) + b"]"


def _copy(source: dict[str, Any], target: dict[str, Any], path: list[str]) -> None:
    """Copy what is at a path, if there is something."""
    keys, value = _find(source, path)
    if value is _MISSING:
        return
    for key in keys[:-1]:
        source = source[key]
        child = target.setdefault(key, {})
        if child is source:  # copied whole already
            return
        target = child
    target[keys[-1]] = value


def _find(value: Any, path: list[str]) -> tuple[list[str], Any]:
    """The keys along a path. A part that is missing is glued to the next: keys may hold dots."""
    keys: list[str] = []
    key: str | None = None
    for part in path:
        key = part if key is None else f"{key}.{part}"
        if isinstance(value, dict) and key in value:
            value = value[key]
            keys.append(key)
            key = None
    return keys, value if key is None else _MISSING
