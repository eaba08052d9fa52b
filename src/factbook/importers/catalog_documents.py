"""Documents of a YAML file, each with its lines; bounded, since anybody may have written it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, NamedTuple

import yaml

from factbook import safe_yaml
from factbook.catalog import validation

LARGEST_FILE: Final = 1024 * 1024
# Deeper than any entity that the catalog takes by default.
_DEEPEST: Final = 100
# Parts of one document, when every alias is replaced by what it stands for.
_MOST_PARTS: Final = 200_000
# A document takes memory beside its parts.
_DOCUMENT_PARTS: Final = 10
# Lines are kept of the fields that problems are about, and of no name longer than this.
_PARENTS: Final = frozenset({"metadata", "spec"})
_LONGEST_NAME: Final = 300
_SHARED: Final = (
    "the catalog files of all repositories are too large together; make the largest ones smaller, "
    "or import them with an importer of their own"
)
_TEMPLATE: Final = "is a template and left out:"
_MIB: Final = 1024 * 1024


class OverBudgetError(Exception):
    """An origin that needs more work than one may; the message says which, and what to do.

    `is_shared`: others left it too little, so that it may be enough another time.
    """

    def __init__(self, message: str, *, is_shared: bool = False) -> None:
        super().__init__(message)
        self.is_shared = is_shared


@dataclass
class SharedBudget:
    """Work that is left for all origins of a reading, beyond a small share that each has."""

    bytes: int = 128 * _MIB
    parts: int = 2_000_000

    # What each origin has beside it.
    SHARE: ClassVar = {"bytes": 16 * 1024, "parts": 500}


@dataclass
class ReadingBudget:
    """Work that is left for the files of one origin.

    `bytes` and `parts` count what files hold, and again whatever placeholders put into entities, as
    often as they do. `steps` are comparisons of a pattern with the name of a file or folder, and
    `trees` the repositories whose files patterns are compared with.
    """

    files: int = 1_000
    targets: int = 2_000
    trees: int = 20
    steps: int = 10_000_000
    bytes: int = 32 * _MIB
    parts: int = 500_000
    shared: SharedBudget = field(default_factory=SharedBudget, repr=False)

    _SENTENCES: ClassVar = {
        "files": "more than {:,} files are not read",
        "targets": "more than {:,} targets are not read; use fewer, or patterns",
        "trees": "patterns are read in at most {:,} repositories; name the files instead",
        "steps": "the patterns take more than {:,} steps; name the files, or use fewer patterns",
        "bytes": "the files have more than {:,} bytes together, counted as often as placeholders "
        "use each; leave some out, or use links instead of placeholders",
        "parts": "the files have more than {:,} values together, counted as often as placeholders "
        "use each; leave some out, or split the repository",
    }

    def spend(self, kind: str, amount: int = 1) -> None:
        """Take from what is left; raises OverBudgetError if it isn't enough."""
        most = getattr(ReadingBudget, kind)
        left = getattr(self, kind) - amount
        setattr(self, kind, left)
        if left < 0:
            raise OverBudgetError(self._SENTENCES[kind].format(most))
        share = SharedBudget.SHARE.get(kind)
        if share is None or most - left <= share:
            return
        rest = getattr(self.shared, kind) - min(amount, most - left - share)
        if rest < 0:
            raise OverBudgetError(_SHARED, is_shared=True)
        setattr(self.shared, kind, rest)

    @classmethod
    def key(cls) -> str:
        """The limits as text, by which earlier readings under other limits are recognized."""
        return ",".join(str(one.default) for one in fields(cls) if one.name != "shared")


class FileProblem(NamedTuple):
    """Sentence about a file, with the line; 0 is no certain one.

    Where nothing is `lost`, the file or document is a template.
    """

    line: int
    message: str
    lost: bool = True


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


def parse_documents(data: bytes, budget: ReadingBudget) -> FileContent:
    """The documents of a file; raises OverBudgetError."""
    content = FileContent()
    if len(data) > LARGEST_FILE:
        content.problems.append(FileProblem(0, f"is larger than {LARGEST_FILE:,} bytes"))
        return content
    budget.spend("bytes", len(data))
    try:
        _check_yaml_events(data)
        loader = safe_yaml.JSONLoader(data)
        while loader.check_node():
            budget.spend("parts", _DOCUMENT_PARTS)
            if (node := loader.get_node()) is not None:
                _add_document(content, loader, node, data, budget)
    except safe_yaml.LimitError as error:
        content.problems.append(FileProblem(0, str(error)))
    except yaml.YAMLError as error:
        content.problems.append(_explain_broken(data, error))
    return content


def get_only_value(data: bytes) -> Any:
    """The value of a file with one document; raises YAMLError, and ValueError for several."""
    if len(data) > LARGEST_FILE:
        raise ValueError(f"is larger than {LARGEST_FILE:,} bytes")
    _check_yaml_events(data)
    loader = safe_yaml.JSONLoader(data)
    node = loader.get_node() if loader.check_node() else None
    if node is None or loader.check_node():
        raise ValueError("does not hold exactly one document")
    safe_yaml.size(node, _MOST_PARTS)
    return loader.construct_document(node)


def count_values(value: Any) -> int:
    """The number of values in a value, itself and the keys of mappings included."""
    total, layer = 1, [value]
    while layer:
        item = layer.pop()
        inner: Iterable[Any] = ()
        if isinstance(item, dict):
            total += 2 * len(item)
            inner = item.values()
        elif isinstance(item, list):
            total += len(item)
            inner = item
        layer += [each for each in inner if isinstance(each, dict | list)]
    return total


def _check_yaml_events(data: bytes) -> None:
    """Raise LimitError for depth and bulk, before the loader makes nodes of them; YAMLError."""
    parts = 0
    for event in safe_yaml.events(data, _DEEPEST, aliases=True):
        parts = 0 if isinstance(event, yaml.DocumentStartEvent) else parts
        parts += isinstance(event, yaml.NodeEvent)
        if parts > _MOST_PARTS:
            raise safe_yaml.LimitError(f"has more than {_MOST_PARTS:,} parts")


def _add_document(
    content: FileContent,
    loader: safe_yaml.JSONLoader,
    node: yaml.Node,
    data: bytes,
    budget: ReadingBudget,
) -> None:
    """Add a document, or the problem that it has; an empty one is skipped."""
    line = node.start_mark.line + 1
    try:
        budget.spend("parts", safe_yaml.size(node, _MOST_PARTS))
        value = loader.construct_document(node)
    except safe_yaml.LimitError as error:
        content.problems.append(FileProblem(line, str(error)))
    except yaml.YAMLError as error:
        content.problems.append(_explain_broken(data, error))
    else:
        if value and isinstance(value, dict):
            document = FileDocument(value, line, dict(_find_lines(node)))
            if sign := validation.template_sign(value):
                path, text = sign
                message = f"{_TEMPLATE} {path} has {text}"
                problem = FileProblem(document.lines.get(path, line), message, lost=False)
                content.problems.append(problem)
            else:
                content.documents.append(document)
        elif value not in (None, {}, []):
            content.problems.append(FileProblem(line, "is not an entity: a mapping is expected"))


def _find_lines(node: yaml.Node, parent: str = "") -> Iterator[tuple[str, int]]:
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or len(key.value) > _LONGEST_NAME:
            continue
        yield f"{parent}.{key.value}" if parent else key.value, key.start_mark.line + 1
        if not parent and key.value in _PARENTS:
            yield from _find_lines(value, key.value)


def _explain_broken(data: bytes, error: yaml.YAMLError) -> FileProblem:
    if sign := safe_yaml.template_sign(data, error):
        return FileProblem(sign.line, f"{_TEMPLATE} it has {sign.text}", lost=False)
    mark = safe_yaml.mark(error)
    text = error.problem if isinstance(error, yaml.MarkedYAMLError) else "holds no text"
    return FileProblem(mark.line + 1 if mark else 0, f"is not valid YAML: {text}")
