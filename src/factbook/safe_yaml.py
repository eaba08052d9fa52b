"""The one reader of YAML: 1.2 with its core schema, as plain values; every failure is a YAMLError.

Text from users and vendors goes through `events` first, which bounds what the loaders construct.

Source: YAML 1.2.2, chapter 10.3. By default the library reads YAML 1.1, where `on` is true, `0755`
is 493, `12:30:45` is 45045 and U+2028 ends a line.
"""

import re
from collections.abc import Iterator
from math import isfinite
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from factbook import text_files

_TAG: Final = "tag:yaml.org,2002:"
# Characters of a number: it is read digit by digit into an ever larger sum.
_LONGEST: Final = 1_000
# Characters of a number used as a key.
_LONGEST_KEY: Final = 18
_NUMBERS: Final = frozenset({f"{_TAG}int", f"{_TAG}float"})
# The library recurses into nested nodes; much deeper nesting would overflow the stack.
_DEEPEST: Final = 1_000
# Errors that escape the library, such as TypeError for a mapping merged into itself.
_ESCAPING: Final = (LookupError, ValueError, ArithmeticError, AttributeError, TypeError)

_NULL: Final = re.compile(r"(null|Null|NULL|~|)\Z")
_BOOLEAN: Final = re.compile(r"(true|True|TRUE|false|False|FALSE)\Z")
_INTEGER: Final = re.compile(r"([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
_FLOAT: Final = re.compile(
    r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z"
)
# Unquoted scalars: kind, pattern, and possible first characters. The first match decides. `<<` is
# not in YAML 1.2, but people who write it mean a merge.
IMPLICIT: Final = (
    ("null", _NULL, ["~", "n", "N", ""]),
    ("bool", _BOOLEAN, list("tTfF")),
    ("int", _INTEGER, list("-+0123456789")),
    ("float", _FLOAT, list("-+.0123456789")),
    ("merge", re.compile(r"<<\Z"), ["<"]),
)
# YAML 1.1 ends a line at these, 1.2 doesn't: they are replaced while the library reads.
_BREAKS: Final = {"\x85": "\ufdd0", "\u2028": "\ufdd1", "\u2029": "\ufdd2"}
_HIDING: Final = str.maketrans(_BREAKS)
_SHOWING: Final = str.maketrans({other: char for char, other in _BREAKS.items()})
# Signs of a template: statement lines, and placeholders in members that every entity needs.
_STATEMENT: Final = re.compile(r"\s*(\{%[^%]*%\}|\{%.*)")
_PLACEHOLDER: Final = re.compile(r"\{\{[^{}]*\}\}|<%[^%]*%>")
_REQUIRED: Final = re.compile(
    r"(?:(?:.*[\s{,])?(?:apiVersion|kind|name|namespace|owner|type)\s?:[^#,{}]{0,100}?|\s*)"
    r"(\{\{[^{}]*\}\}|<%[^%]*%>)"
)
_LONGEST_SIGN: Final = 60
# Byte order marks before a document. The library only handles one at the start of a text.
_MARK: Final = "\ufeff"
_DOCUMENT_MARKS: Final = re.compile(
    r"(\A|^(?:---|\.\.\.)[ \t]*(?:#[^\n]*)?\r?\n(?:[ \t]*(?:#[^\n]*)?\r?\n)*)\ufeff+"
    r"|^\ufeff+(?=---(?:\s|\Z))",
    re.MULTILINE,
)


# A stream without a document. The library refuses it if it has a tab or a document end.
_NOTHING: Final = r"(?:(?:\.\.\.)?[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\Z))*+\Z"
_NO_TEXT: Final = re.compile(_NOTHING)
_NO_BYTES: Final = re.compile(_NOTHING.encode())


class Loader(yaml.CSafeLoader):
    """Loader that constructs only plain values, and raises YAMLError for everything else."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    _depth = 0

    def __init__(self, stream: str | bytes) -> None:
        if isinstance(stream, bytes):
            stream = text_files.utf_8(stream)
            if text_files.is_marked(stream):
                raise yaml.reader.ReaderError("", 0, stream[0], "utf-16", "is cut off")
        stream = _without_marks(stream)
        if _NO_TEXT.match(stream) if isinstance(stream, str) else _NO_BYTES.match(stream):
            stream = ""
        self._hidden = has_breaks(stream)
        super().__init__(_ended(_hiding(stream) if self._hidden else stream))

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """The text of a scalar."""
        found = super().construct_scalar(node)
        return found.translate(_SHOWING) if self._hidden else found

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        """Called before a node is read. Raises ComposerError if it is nested too deeply."""
        if self._depth > _DEEPEST:
            problem = f"it is nested more than {_DEEPEST} deep"
            mark = current_node.start_mark
            raise yaml.composer.ComposerError(None, None, problem, mark)
        self._depth += 1
        super().descend_resolver(current_node, current_index)

    def ascend_resolver(self) -> None:
        """Called after a node is read."""
        self._depth -= 1
        super().ascend_resolver()

    def construct_document(self, node: yaml.Node) -> Any:
        """The value of a document. Raises ConstructorError if it is nested too deeply."""
        try:
            return super().construct_document(node)
        except RecursionError:
            raise _wrong(node, "it is nested too deeply") from None
        finally:  # the next document starts afresh, even if this one failed
            self.constructed_objects, self.recursive_objects = {}, {}
            self.state_generators, self.deep_construct = [], False

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping. Raises ConstructorError for a key that is a long number.

        Long numbers can be chosen to have one hash, and a mapping of them takes quadratic time.
        Short numbers all have different hashes.
        """
        for key, _ in node.value:
            if key.tag in _NUMBERS and len(key.value) > _LONGEST_KEY:
                problem = (
                    f"a key is a number of more than {_LONGEST_KEY} characters; put it in quotes"
                )
                raise _wrong(key, problem)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node. Raises ConstructorError if it does not match its tag."""
        if node.tag in _NUMBERS and len(node.value) > _LONGEST:
            raise _wrong(node, f"a number has more than {_LONGEST} characters")
        try:
            return super().construct_object(node, deep)
        except _ESCAPING:
            raise _wrong(node, f"a value is none of {node.tag}") from None


class LimitError(yaml.YAMLError):
    """A text exceeds a limit; the message doesn't quote the text."""


def events(
    text: str | bytes, deepest: int, *, most_parts: int | None = None, aliases: bool = False
) -> Iterator[Any]:
    """Iterate over the parser events of a text, without constructing values.

    Raises LimitError for deep nesting, as loaders recurse, for too many parts, and for aliases,
    as a few lines of them can expand beyond memory; YAMLError for invalid YAML.
    """
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader)):
        if most_parts is not None and number > most_parts:
            raise LimitError(f"has more than {most_parts} parts")
        if isinstance(event, yaml.AliasEvent) and not aliases:
            raise LimitError("has an alias, which is not read")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > deepest:
            raise LimitError(f"is nested more than {deepest} deep")
        yield event


def size(root: yaml.Node, most: int) -> int:
    """Count the parts of a document with each alias expanded.

    Raises LimitError for more than `most` parts, and for a document that contains itself.
    """
    sizes: dict[int, int] = {}
    open_: set[int] = set()
    stack = [root]
    while stack:
        node = stack[-1]
        if id(node) in sizes:
            stack.pop()
            continue
        children: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            children = [child for pair in node.value for child in pair]
        elif isinstance(node, yaml.SequenceNode):
            children = node.value
        if id(node) not in open_:
            open_.add(id(node))
            # Each child once: a file may use an anchor a hundred thousand times.
            waiting = {id(child): child for child in children if id(child) not in sizes}
            if not open_.isdisjoint(waiting):
                raise LimitError("contains itself")
            stack += waiting.values()
            if waiting:
                continue
        stack.pop()
        open_.discard(id(node))
        sizes[id(node)] = 1 + sum(sizes[id(child)] for child in children)
        if sizes[id(node)] > most:
            raise LimitError(f"has more than {most:,} parts")
    return sizes[id(root)]


def check(text: str | bytes, deepest: int, *, most_parts: int | None = None) -> None:
    """Check a text without aliases. Raises LimitError and YAMLError like `events`."""
    for _ in events(text, deepest, most_parts=most_parts):
        pass


def load(text: str | bytes, loader: type[Loader] = Loader) -> Any:
    """Load the only document of a text. Raises YAMLError."""
    return yaml.load(text, loader)  # noqa: S506 - the loaders make plain values only


def load_as_json(text: str | bytes, loader: type[Loader] = Loader) -> Any:
    """Load the only document of a text, with keys as strings.

    Raises YAMLError, and TypeError or ValueError for values JSON lacks, such as a list as a key.
    """
    return msgspec.json.decode(msgspec.json.encode(load(text, loader)))


def mark(error: yaml.YAMLError) -> yaml.Mark | None:
    """Position of an error, if it is known."""
    if isinstance(error, yaml.MarkedYAMLError):
        return error.problem_mark or error.context_mark
    return None


class TemplateSign(NamedTuple):
    """Template syntax in a file, and its line; the file is YAML only once a program fills it in."""

    line: int
    text: str


def template_sign(data: bytes, error: yaml.YAMLError) -> TemplateSign | None:
    """Find the statement or placeholder that shows that a file with this error is a template.

    A placeholder counts if parsing stopped at another one, and an entity needs the member it fills.
    """
    lines = text_files.utf_8(data).decode(errors="replace").splitlines()
    position = mark(error)
    signs = [_STATEMENT]
    if position and _PLACEHOLDER.search("".join(lines[position.line : position.line + 1])):
        signs.insert(0, _REQUIRED)
    for sign in signs:
        for number, line in enumerate(lines, 1):
            if found := sign.match(line):
                return TemplateSign(number, found[1][:_LONGEST_SIGN])
    return None


class UniqueLoader(Loader):
    """Loader that converts mapping keys to strings and refuses duplicate keys, as YAML demands."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping. Raises ConstructorError for a duplicate key."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}merge":
                text = key_text(self.construct_object(key))
                if text in seen:
                    raise _wrong(key, f'the key "{text}" is there twice')
                seen.add(text)
        found = super().construct_mapping(node, deep)
        return {key_text(key): value for key, value in found.items()}


class JSONLoader(UniqueLoader):
    """Loader restricted to JSON's model: keys are unique strings, numbers are finite."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Construct a value. Raises ConstructorError for a number that JSON lacks."""
        value = super().construct_object(node, deep)
        if isinstance(value, float) and not isfinite(value):
            raise _wrong(node, f"JSON has no number {node.value}")
        return value


def key_text(key: object) -> str:
    """Convert a key to a string, as JSON has no other keys: `1.50` becomes 1.5."""
    match key:
        case str():
            return key
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[key]
        case float() if key.is_integer():
            return str(int(key))
        case _:
            return str(key)


def has_breaks(stream: str | bytes) -> bool:
    """True if the stream contains line breaks that only YAML 1.1 recognizes."""
    if isinstance(stream, bytes):
        return any(char.encode() in stream for char in _BREAKS)
    return any(char in stream for char in _BREAKS)


def _without_marks(stream: str | bytes) -> str | bytes:
    """Remove the byte order marks that begin documents (YAML 1.2.2, chapter 9.1.1).

    Files joined on Windows have them.
    """
    if _MARK not in stream if isinstance(stream, str) else _MARK.encode() not in stream:
        return stream
    try:
        text = stream.decode() if isinstance(stream, bytes) else stream
    except UnicodeDecodeError:
        return stream
    return _DOCUMENT_MARKS.sub(r"\1", text)


def _hiding(stream: str | bytes) -> str | bytes:
    """Replace line breaks that only YAML 1.1 recognizes."""
    try:
        text = stream.decode() if isinstance(stream, bytes) else stream
    except UnicodeDecodeError:
        return stream
    if any(other in text for other in _BREAKS.values()):
        raise yaml.reader.ReaderError("", 0, 0xFDD0, "unicode", "no character of a text")
    return text.translate(_HIDING)


def _ended(stream: str | bytes) -> str | bytes:
    """End the last line with a line break; Backstage also ends a block of text there with one.

    YAML 1.2.2, chapter 5.4, leaves this to the reader.
    """
    if isinstance(stream, str):
        return f"{stream}\n" if stream.rpartition("\n")[2].strip() else stream
    return stream + b"\n" if stream.rpartition(b"\n")[2].strip() else stream


def _wrong(node: yaml.Node, problem: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _of_form(form: re.Pattern[str], loader: Loader, node: yaml.ScalarNode) -> str:
    """Text of a scalar; raises ValueError when it doesn't have the form its tag claims."""
    text = str(loader.construct_scalar(node))
    if not form.match(text):
        raise ValueError
    return text


def _null(loader: Loader, node: yaml.ScalarNode) -> None:
    _of_form(_NULL, loader, node)


def _boolean(loader: Loader, node: yaml.ScalarNode) -> bool:
    return _of_form(_BOOLEAN, loader, node)[0] in "tT"


def _integer(loader: Loader, node: yaml.ScalarNode) -> int:
    text = _of_form(_INTEGER, loader, node)
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text[2:] if base != 10 else text, base)


def _float(loader: Loader, node: yaml.ScalarNode) -> float:
    text = _of_form(_FLOAT, loader, node)
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


def _text(loader: Loader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


for _kind, _form, _beginnings in IMPLICIT:
    Loader.add_implicit_resolver(_TAG + _kind, _form, _beginnings)
for _kind, _made in {"null": _null, "bool": _boolean, "int": _integer, "float": _float}.items():
    Loader.add_constructor(_TAG + _kind, _made)
# Tags of YAML 1.1 that the core schema lacks: their values are read as text.
for _kind in ("timestamp", "binary", "merge"):
    Loader.add_constructor(_TAG + _kind, _text)
for _kind, _as in {"set": "map", "omap": "seq", "pairs": "seq"}.items():
    Loader.add_constructor(_TAG + _kind, Loader.yaml_constructors[_TAG + _as])
