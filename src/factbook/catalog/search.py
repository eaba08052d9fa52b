"""The flattened index behind filters: rows of a dotted key and a value, both lower case.

Source: the catalog API's rules of its search index. `kind` and the name, namespace and uid of
`metadata` are columns of their own, relations are a table of their own: neither is repeated here.
"""

from typing import Any

SearchRow = tuple[str, str]

MAX_LENGTH = 200
# A value that is null or too long to index: the key exists, and no value equals it.
EXISTS = "\x01"

_COLUMNS = frozenset({"kind", "metadata.name", "metadata.namespace", "metadata.uid"})
_LEFT_OUT = frozenset({"metadata.etag", "status", "attachments", "relations"})
_SKIPPED = _COLUMNS | _LEFT_OUT


def flatten(document: dict[str, Any]) -> set[SearchRow]:
    """Every (key, value) by which filters find this entity."""
    rows: set[SearchRow] = set()
    for key, value in document.items():
        _walk(key.lower().replace("\0", ""), value, rows)
    return rows


def _walk(path: str, value: Any, rows: set[SearchRow]) -> None:
    if path in _SKIPPED:
        return
    if type(value) is str:
        if len(path) <= MAX_LENGTH:
            rows.add((path, text(value)))
    elif type(value) is dict:
        for key, child in value.items():
            _walk(_key(path, key), child, rows)
    elif type(value) is list:
        for child in value:
            _walk(path, child, rows)
            if type(child) is str and len(path) + len(child) < MAX_LENGTH:
                rows.add((_key(path, child), "true"))
    elif len(path) <= MAX_LENGTH:
        rows.add((path, text(value)))


def _key(path: str, part: str) -> str:
    # PostgreSQL's text cannot hold NUL.
    return f"{path}.{part}".lower().replace("\0", "")


def text(value: Any) -> str:
    """A scalar as the index holds it: in lower case, numbers and booleans as JSON writes them."""
    if type(value) is str:
        return value.lower().replace("\0", "") if len(value) <= MAX_LENGTH else EXISTS
    if value is None:
        return EXISTS
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is float and value.is_integer():
        value = int(value)
    number = str(value)
    return number if len(number) <= MAX_LENGTH else EXISTS
