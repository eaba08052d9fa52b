"""GraphQL documents of our own without the fields that an older server lacks."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

# Where a field is: its own name or alias, after those of the fields around it.
FieldPath = tuple[str, ...]

# The codes of errors about a document that the schema of the server doesn't have all of.
_UNKNOWN: Final = frozenset(
    {"undefinedField", "argumentNotAccepted", "argumentLiteralsIncompatible", "undefinedType"}
)
_TOKEN: Final = re.compile(r"\([^()]*\)|[{}]|\w+:?")
_EMPTY: Final = re.compile(r"(?:\w+: )?\w+(?: \([^()]*\))? \{\s*\}")
_VARIABLE: Final = re.compile(r"\$(\w+): [\w!\[\]]+")


def list_unknown_fields(errors: object) -> list[FieldPath]:
    """The paths of fields that the server doesn't know, or not with these arguments."""
    found = []
    for error in errors if isinstance(errors, list) else []:
        extensions = error.get("extensions") if isinstance(error, Mapping) else None
        code = extensions.get("code") if isinstance(extensions, Mapping) else None
        if code in _UNKNOWN:
            path = error.get("path")
            # The first names the operation.
            names = path[1:] if isinstance(path, list) else []
            found.append(tuple(name for name in names if isinstance(name, str)))
    return found


def remove_fields(document: str, fields: Collection[FieldPath]) -> str:
    """The document of one query without some fields, and without the variables of these alone."""
    if not fields:
        return document
    head, _, body = document.partition("{")
    body = " ".join(
        token for path, token in _walk_fields(body) if not _is_among_fields(path, fields)
    )
    while (found := _EMPTY.sub("", body)) != body:
        body = found
    used = [one[0] for one in _VARIABLE.finditer(head) if f"${one[1]}" in _list_variables(body)]
    name = head.partition("(")[0].strip()
    return f"{name}({', '.join(used)}) {{ {body}" if used else f"{name} {{ {body}"


def _list_variables(body: str) -> set[str]:
    return set(re.findall(r"\$\w+", body))


def _is_among_fields(path: FieldPath, fields: Collection[FieldPath]) -> bool:
    return any(path[:size] in fields for size in range(1, len(path) + 1))


def _walk_fields(body: str) -> Iterator[tuple[FieldPath, str]]:
    """The parts of a body, each with the path of its field."""
    path: list[str] = []
    name, is_aliased = "", False
    for part in _TOKEN.findall(body):
        if part == "}":
            yield tuple(path), part
            if path:
                path.pop()
            continue
        if part[0] not in "({" and not is_aliased:
            name = part.rstrip(":")
        is_aliased = part.endswith(":")
        yield (*path, name), part
        if part == "{":
            path.append(name)


def match_optional_fields(
    refused: Collection[FieldPath], optional: Collection[FieldPath]
) -> dict[FieldPath, FieldPath] | None:
    """A refused path by the optional field that it is in; None if one is in none of them."""
    found: dict[FieldPath, FieldPath] = {}
    for path in refused:
        prefixes = (path[:size] for size in range(1, len(path) + 1))
        field = next((one for one in prefixes if one in optional), None)
        if field is None:
            return None
        found.setdefault(field, path)
    return found


def name_refused_fields(document: str, refused: Collection[FieldPath]) -> str:
    """The names of what was refused; of words in the document, as these are our own."""
    known = set(re.findall(r"\w+", document))
    return ", ".join(sorted({path[-1] for path in refused if path and path[-1] in known}))


def answer_null(data: Mapping[str, Any], paths: Collection[FieldPath]) -> None:
    """Answer null for fields directly below a root field that were not asked for."""
    for root, *names_ in paths:
        if len(names_) == 1 and isinstance(data.get(root), dict):
            data[root].setdefault(names_[0], None)
