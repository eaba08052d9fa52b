"""Read entities, with their places, from YAML and JSON files."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from factbook import safe_yaml, text_files
from factbook.catalog import validation
from factbook.catalog.ref import DEFAULT_NAMESPACE, EntityRef
from factbook.catalog.validation import normal_name
from factbook.errors import InputError

STDIN = "-"
# Deeper than any entity that the service accepts.
_DEEPEST = 1_000
_MOST_PARTS = 1_000_000
ENTITY_NOUN: Final = "an entity"
_LINES: Final = (".jsonl", ".ndjson")
_MARK: Final = b"\xef\xbb\xbf"
_TEMPLATE: Final = "{} is a template, as {} shows: {}. Fill it in first, or leave it out."
_VERSION = (
    "%YAML 1.1 would give other values to words such as on and to numbers such as 0755; "
    "take the line out, and it is read as YAML 1.2"
)


class EntityDocument(NamedTuple):
    """An entity as JSON and its place, e.g. `catalog.yaml document 2 (line 14)`.

    `ref` is its reference, if it has a kind and a name.
    """

    entity: msgspec.Raw
    origin: str
    ref: str | None

    @property
    def named(self) -> str:
        """The place and the reference, for people."""
        return f"{self.origin}, {self.ref}" if self.ref else self.origin


class DocumentsError(InputError):
    """A file cannot be read; has a sentence for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


def parse_entity_file(
    data: bytes, name: str, noun: str = ENTITY_NOUN
) -> list[EntityDocument] | None:
    """Parse the content of a file with this name, like `read_entity_file`."""
    problems: list[str] = []
    found: list[EntityDocument] = []
    is_empty = True
    data = text_files.utf_8(data)
    for place, value in _values_in(data, name, problems):
        is_empty = False
        for origin, item in _entities_in(value, place, name):
            with _problems_collected(problems):
                found.append(_entity_document(item, origin, noun))
    if problems:
        raise DocumentsError(problems)
    return None if is_empty else found


def read_entity_file(source: str) -> list[EntityDocument] | None:
    """Read the entities of a file, or of standard input for `-`; None if empty.

    A YAML document, a JSON file and a line of JSON Lines contain an entity, a list of entities or
    `{"items": [...]}`. Skips empty documents and lines. Raises InputError naming the file, and
    DocumentsError naming each unreadable document.
    """
    return parse_entity_file(*_read_source(source))


def _read_source(source: str) -> tuple[bytes, str]:
    if source == STDIN:
        return sys.stdin.buffer.read(), "standard input"
    path = Path(source)
    if path.is_dir():
        raise InputError(f"{source} is a directory. Name its files, for example {path}/*.yaml.")
    try:
        return path.read_bytes(), source
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}.") from None


def _values_in(data: bytes, name: str, problems: list[str]) -> Iterator[tuple[str, Any]]:
    """Iterate over the values in a file with their places; the place is empty for a JSON file."""
    texts = _json_texts(data, name)
    if texts is None:
        yield from _yaml_values(data, name, problems)
        return
    for place, text in texts:
        try:
            value = msgspec.json.decode(text.removeprefix(_MARK))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            problems.append(f"{place or name} is not valid JSON: {error}.")
        else:
            yield place, value


def _json_texts(data: bytes, name: str) -> list[tuple[str, bytes]] | None:
    """List the texts in a file of JSON or JSON Lines with their places; None for YAML."""
    lines = [(f"{name} line {n}", line) for n, line in enumerate(data.splitlines(), 1)]
    lines = [line for line in lines if line[1].strip()]
    if name.lower().endswith(_LINES):
        return lines
    first = [text.removeprefix(_MARK) for _, text in lines[:2]]
    # In JSON Lines, the first line is a complete object, and the next line starts another.
    if [text.lstrip()[:1] for text in first] == [b"{", b"{"] and _looks_like_json(first[0]):
        return lines
    return [("", data)] if name.lower().endswith(".json") or _looks_like_json(data) else None


def _looks_like_json(data: bytes) -> bool:
    """True if this is JSON; a YAML document may also start with a bracket."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _entities_in(value: Any, place: str, name: str) -> list[tuple[str, Any]]:
    """List the entities in a value with their places; a list or `items` may have several."""
    match value:
        case list():
            items = value
        case {"items": list(items)} if "kind" not in value:
            pass
        case _:
            return [(place or f"{name} document 1", value)]
    form = f"{place}, item {{}}" if place else f"{name} document {{}}"
    return [(form.format(number), item) for number, item in enumerate(items, 1)]


def _yaml_values(data: bytes, name: str, problems: list[str]) -> Iterator[tuple[str, Any]]:
    try:
        for event in safe_yaml.events(data, _DEEPEST, aliases=True):
            if getattr(event, "version", None) == (1, 1):
                raise yaml.constructor.ConstructorError(None, None, _VERSION, event.start_mark)
        loader = safe_yaml.JSONLoader(data)
        for number in count(1):
            if not loader.check_node():
                return
            node = loader.get_node()
            place = f"{name} document {number} (line {node.start_mark.line + 1})" if node else ""
            value = None
            with _problems_collected(problems, lambda error: _yaml_problem(data, name, error)):
                if node:
                    _check_expansion(node, place)
                value = node and loader.construct_document(node)
            if value is not None:
                yield place, value
    except safe_yaml.LimitError:
        problems.append(f"{name} is nested too deeply.")
    except yaml.YAMLError as error:  # the rest of the file is unreadable
        problems.append(_yaml_problem(data, name, error))


@contextmanager
def _problems_collected(
    problems: list[str], broken: Callable[[yaml.YAMLError], str] = str
) -> Iterator[None]:
    """Add a document's error to the problems, and continue with the other documents."""
    try:
        yield
    except InputError as error:
        problems.append(error.message)
    except yaml.YAMLError as error:
        problems.append(broken(error))


def _yaml_problem(data: bytes, name: str, error: yaml.YAMLError) -> str:
    if sign := safe_yaml.template_sign(data, error):
        return _TEMPLATE.format(name, f"line {sign.line}", sign.text)
    if isinstance(error, yaml.MarkedYAMLError) and (mark := safe_yaml.mark(error)):
        reason = f"{error.problem}, in line {mark.line + 1}, column {mark.column + 1}"
    else:
        reason = " ".join(str(error).split())
    return f"{name} is not valid YAML: {reason}."


def _check_expansion(node: yaml.Node, place: str) -> None:
    """Refuse a document whose aliases expand beyond the size of an entity."""
    try:
        safe_yaml.size(node, _MOST_PARTS)
    except safe_yaml.LimitError as error:
        raise InputError(f"{place} {error}.") from None


def _entity_document(value: Any, origin: str, noun: str) -> EntityDocument:
    if not isinstance(value, dict):
        types = {"list": "a list", "str": "text", "NoneType": "null"}
        actual = types.get(type(value).__name__, f"the value {value}")
        raise InputError(f"{origin} is not {noun}: a mapping is expected, not {actual}.")
    if noun == ENTITY_NOUN and (sign := validation.template_sign(value)):
        raise InputError(_TEMPLATE.format(origin, *sign))
    try:
        entity = msgspec.Raw(msgspec.json.encode(value))
        ref: str | None = None
        match value:
            case {"kind": str(kind), "metadata": {"name": str(name)} as metadata}:
                namespace = metadata.get("namespace", DEFAULT_NAMESPACE)
                ref = str(EntityRef.of(kind, str(namespace), normal_name(name)))
        return EntityDocument(entity, origin, ref)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{origin} cannot be written as JSON: {error}.") from None
