"""The flattened index behind filters and facets: rows of a dotted key and a value.

Source: the catalog API's rules for its search index. Keys and values are in lower case; facets show
the value as it was written. Namespace and uid are columns, and relations have a table of their own,
so none of them is repeated here.
"""

from typing import Any

SearchRow = tuple[str, str, str]  # key, value, and the value as written if that is different

MAX_LENGTH = 200
# A value that is null or too long to index: the key exists, and no value equals it.
EXISTS = "\x01"

_COLUMNS = frozenset({"metadata.namespace", "metadata.uid"})
_LEFT_OUT = frozenset({"metadata.etag", "status", "attachments", "relations"})
_SKIPPED = _COLUMNS | _LEFT_OUT


def flatten(document: dict[str, Any]) -> set[SearchRow]:
    """Every (key, value, value as written) under which the entity is indexed."""
    rows: set[SearchRow] = set()
    for key, value in document.items():
        _walk(key.lower().replace("\0", ""), value, rows)
    return rows


def _walk(path: str, value: Any, rows: set[SearchRow]) -> None:
    if path in _SKIPPED:
        return
    if type(value) is str:
        if len(path) <= MAX_LENGTH:
            found = text(value)
            # Most values are in lower case already; an empty text takes no room. PostgreSQL's text
            # cannot hold NUL.
            written = "" if found in (value, EXISTS) else value.replace("\0", "")
            rows.add((path, found, written))
    elif type(value) is dict:
        for key, child in value.items():
            _walk(_key(path, key), child, rows)
    elif type(value) is list:
        for child in value:
            _walk(path, child, rows)
            if type(child) is str and len(path) + len(child) < MAX_LENGTH:
                rows.add((_key(path, child), "true", ""))
    elif len(path) <= MAX_LENGTH:
        rows.add((path, text(value), ""))


def _key(path: str, part: str) -> str:
    return f"{path}.{part}".lower().replace("\0", "")


def text(value: Any) -> str:
    """A scalar as indexed: in lower case, with numbers and booleans formatted as in JSON."""
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
