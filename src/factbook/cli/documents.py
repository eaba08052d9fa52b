"""Entities read from files of YAML or JSON, with the place of each one."""

import sys
from collections.abc import Iterator
from datetime import date
from itertools import count
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from factbook.errors import InputError
from factbook.integrations import safe_yaml

STDIN = "-"
# Deeper than any entity that the service takes.
_DEEPEST = 1_000


class Document(NamedTuple):
    """An entity as JSON, and where it was read, e.g. `catalog.yaml document 2 (line 14)`."""

    entity: msgspec.Raw
    origin: str


def parse(data: bytes, name: str, noun: str = "an entity") -> list[Document] | None:
    """The documents in what a file of this name holds; as `read` reads them."""
    if name.lower().endswith(".json") or _looks_like_json(data):
        return list(_json_documents(data, name, noun))
    return list(_yaml_documents(data, name, noun)) or None


def read(source: str) -> list[Document] | None:
    """The entities of a file, or of standard input for `-`; None when it holds nothing at all.

    YAML may hold many documents, of which empty ones are skipped; JSON may hold one entity, a list
    of them or `{"items": [...]}`. Raises InputError naming the file and the document.
    """
    return parse(*_content(source))


def _content(source: str) -> tuple[bytes, str]:
    if source == STDIN:
        return sys.stdin.buffer.read(), "standard input"
    path = Path(source)
    if path.is_dir():
        raise InputError(f"{source} is a directory. Name its files, for example {path}/*.yaml.")
    try:
        return path.read_bytes(), source
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}.") from None


def _looks_like_json(data: bytes) -> bool:
    """True if this is JSON; a YAML document may begin with a bracket just as well."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _json_documents(data: bytes, name: str, noun: str) -> Iterator[Document]:
    try:
        value = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{name} is not valid JSON: {error}.") from None
    match value:
        case list():
            items = value
        case {"items": list(items)} if "kind" not in value:
            pass
        case _:
            items = [value]
    for number, item in enumerate(items, 1):
        yield _document(item, f"{name} document {number}", noun)


def _yaml_documents(data: bytes, name: str, noun: str) -> Iterator[Document]:
    try:
        _check_depth(data)
        loader = _Loader(data)
        for number in count(1):
            if not loader.check_node():
                return
            node = loader.get_node()
            value = node and loader.construct_document(node)
            if node and value is not None:
                line = node.start_mark.line + 1
                yield _document(value, f"{name} document {number} (line {line})", noun)
    except yaml.YAMLError as error:
        raise InputError(f"{name} is not valid YAML: {_gist(error)}.") from None
    except RecursionError:
        raise InputError(f"{name} is nested too deeply.") from None


def _check_depth(data: bytes) -> None:
    """Raise RecursionError before the reader, which is in C, takes the process along."""
    depth = 0
    for event in yaml.parse(data, yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise RecursionError


def _document(value: Any, origin: str, noun: str) -> Document:
    if not isinstance(value, dict):
        raise InputError(f"{origin} is not {noun}: a mapping is expected, not {_kind(value)}.")
    try:
        return Document(msgspec.Raw(msgspec.json.encode(value)), origin)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{origin} cannot be written as JSON: {error}.") from None


def _kind(value: object) -> str:
    return {"list": "a list", "str": "text", "NoneType": "null"}.get(
        type(value).__name__, f"the value {value}"
    )


def _gist(error: yaml.YAMLError) -> str:
    """YAML error and its position, in one line."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return f"{error.problem}, in line {mark.line + 1}, column {mark.column + 1}"
    return " ".join(str(error).split())


class _Loader(safe_yaml.Loader):
    """YAML restricted to JSON's model: keys are unique texts, numbers are finite."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping. Raises ConstructorError for a key that is there twice, which YAML forbids."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f'the key "{key.value}" is there twice', key.start_mark
                    )
                seen.add(key.value)
        found = super().construct_mapping(node, deep)
        return {_key(key): value for key, value in found.items()}


def _key(key: object) -> str:
    return key if isinstance(key, str) else msgspec.json.encode(key).decode()


def _text_of_date(loader: _Loader, node: yaml.ScalarNode) -> str:
    try:
        moment: date = loader.construct_yaml_timestamp(node)
    except ValueError:
        # It has the form of a date and is none, such as 2026-02-30: then it is text.
        return str(node.value)
    return moment.isoformat()


def _finite(loader: _Loader, node: yaml.ScalarNode) -> float:
    number = loader.construct_yaml_float(node)
    if not isfinite(number):
        problem = f"JSON has no number {node.value}"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return number


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _text_of_date)
_Loader.add_constructor("tag:yaml.org,2002:float", _finite)
