"""Documents of a YAML file, each with its lines; bounded, since anybody may have written the file.

Every failure is a sentence with a line. A document that cannot be used leaves the others alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import yaml

from factbook import safe_yaml

LARGEST: Final = 1024 * 1024
# Deeper than any entity that the catalog takes by default.
_DEEPEST: Final = 100
# Parts of one document, when every alias is replaced by what it stands for.
_MOST_PARTS: Final = 200_000


class FileProblem(NamedTuple):
    """Sentence about a file, with the line; 0 is no certain one."""

    line: int
    message: str


@dataclass(frozen=True)
class FileDocument:
    """Mapping of a file; `lines` has the line of each field by its path, two levels deep."""

    value: dict[str, Any]
    line: int
    lines: dict[str, int] = field(repr=False)


@dataclass
class FileContent:
    """Documents and problems of a file; the rest of a file after a mistake in YAML is unknown."""

    documents: list[FileDocument] = field(default_factory=list)
    problems: list[FileProblem] = field(default_factory=list)


def parsed(data: bytes) -> FileContent:
    """The documents of a file."""
    content = FileContent()
    if len(data) > LARGEST:
        content.problems.append(FileProblem(0, f"is larger than {LARGEST:,} bytes"))
        return content
    try:
        for _ in safe_yaml.events(data, _DEEPEST, aliases=True):
            pass
        loader = safe_yaml.JSONLoader(data)
        while loader.check_node():
            if (node := loader.get_node()) is not None:
                _add(content, loader, node)
    except safe_yaml.LimitError as error:
        content.problems.append(FileProblem(0, str(error)))
    except yaml.YAMLError as error:
        content.problems.append(_broken(error))
    return content


def only_value(data: bytes) -> Any:
    """The value of a file with one document; raises YAMLError, and ValueError for several."""
    if len(data) > LARGEST:
        raise ValueError(f"is larger than {LARGEST:,} bytes")
    for _ in safe_yaml.events(data, _DEEPEST, aliases=True):
        pass
    loader = safe_yaml.JSONLoader(data)
    node = loader.get_node() if loader.check_node() else None
    if node is None or loader.check_node():
        raise ValueError("does not hold exactly one document")
    _check_parts(node)
    return loader.construct_document(node)


def _add(content: FileContent, loader: safe_yaml.JSONLoader, node: yaml.Node) -> None:
    """Add a document, or the problem that it has; an empty one is skipped."""
    line = node.start_mark.line + 1
    try:
        _check_parts(node)
        value = loader.construct_document(node)
    except safe_yaml.LimitError as error:
        content.problems.append(FileProblem(line, str(error)))
    except yaml.YAMLError as error:
        content.problems.append(_broken(error))
    else:
        if isinstance(value, dict):
            content.documents.append(FileDocument(value, line, dict(_lines(node))))
        elif value is not None:
            content.problems.append(FileProblem(line, "is not an entity: a mapping is expected"))


def _check_parts(root: yaml.Node) -> None:
    """Raise LimitError for a document that aliases make too large, or that contains itself."""
    sizes: dict[int, int] = {}
    open_: set[int] = set()
    stack = [root]
    while stack:
        node = stack[-1]
        children = _children(node)
        waiting = [child for child in children if id(child) not in sizes]
        if id(node) in sizes or not waiting:
            stack.pop()
            open_.discard(id(node))
            sizes[id(node)] = 1 + sum(sizes[id(child)] for child in children)
            if sizes[id(node)] > _MOST_PARTS:
                raise safe_yaml.LimitError(f"has more than {_MOST_PARTS:,} parts")
            continue
        open_.add(id(node))
        if any(id(child) in open_ for child in waiting):
            raise safe_yaml.LimitError("contains itself")
        stack += waiting


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _lines(node: yaml.Node, prefix: str = "") -> Iterator[tuple[str, int]]:
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode):
            yield f"{prefix}{key.value}", key.start_mark.line + 1
            if not prefix:
                yield from _lines(value, f"{key.value}.")


def _broken(error: yaml.YAMLError) -> FileProblem:
    mark = safe_yaml.mark(error)
    text = error.problem if isinstance(error, yaml.MarkedYAMLError) else "holds no text"
    return FileProblem(mark.line + 1 if mark else 0, f"is not valid YAML: {text}")
