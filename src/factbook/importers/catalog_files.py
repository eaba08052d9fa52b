"""Reader of `catalog-info.yaml` files: from the root file of each repository to its entities.

YAML documents are read with line numbers and within bounds: anyone may have written them.
The reader follows the targets of locations, and replaces the placeholders `{$text: FILE}`,
`{$json: FILE}` and `{$yaml: FILE}` in an entity.
"""

import asyncio
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import groupby
from typing import Any, ClassVar, Final, NamedTuple, Protocol
from urllib.parse import unquote

import msgspec
import yaml

from factbook import safe_yaml, text_files
from factbook.catalog import validation
from factbook.catalog.piecewise import slices
from factbook.importers.snapshot import ReadingProblem
from factbook.outbound.outcomes import Missing, Outcome

LARGEST_FILE: Final = 1024 * 1024
# Deeper than any entity that the catalog accepts by default.
_DEEPEST: Final = 100
# Parts of one document, with all aliases expanded.
_MOST_PARTS: Final = 200_000
# Memory of a document itself, counted in parts.
_DOCUMENT_PARTS: Final = 10
# Lines are kept for the fields that problems name, up to this length of the name.
_PARENTS: Final = frozenset({"metadata", "spec"})
_LONGEST_NAME: Final = 300
_SHARED: Final = (
    "the catalog files of all repositories are too large together; make the largest ones smaller, "
    "or import them with an importer of their own"
)
_TEMPLATE: Final = "is a template and left out:"
_MIB: Final = 1024 * 1024


class OverBudgetError(Exception):
    """An origin exceeds its budget; the message has the limit and a remedy.

    `is_shared`: other origins used up the shared budget, so a later reading may succeed.
    """

    def __init__(self, message: str, *, is_shared: bool = False) -> None:
        super().__init__(message)
        self.is_shared = is_shared


@dataclass
class SharedBudget:
    """Work left for all origins of a reading, in addition to a small share for each."""

    bytes: int = 128 * _MIB
    parts: int = 2_000_000

    # The share of each origin.
    SHARE: ClassVar = {"bytes": 16 * 1024, "parts": 500}


@dataclass
class ReadingBudget:
    """Work left for the files of one origin.

    `bytes` and `parts` count the content of files, and each insertion by a placeholder again.
    `steps` are comparisons of a pattern with a file or folder name, and `trees` the repositories
    searched with patterns.
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
        """Spend from the budget; raises OverBudgetError if too little is left."""
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
        """The limits as text, to recognize readings made under other limits."""
        return ",".join(str(one.default) for one in fields(cls) if one.name != "shared")


class FileProblem(NamedTuple):
    """Sentence about a file, with the line; 0 if uncertain.

    Nothing is `lost` if the file or document is a template.
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
    """Documents and problems of a file; anything after a YAML mistake is unknown."""

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
    """The number of values in a value, including itself and the keys of mappings."""
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
    """Raise LimitError for depth and size before the loader builds nodes; raises YAMLError."""
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
    """Add a document, or its problem; an empty document is skipped."""
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


_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_LONGEST_TARGET: Final = 1_000

# The texts of a name between its stars; None for `**`, any folders.
_Form = list[str] | None

_FOLDERS: Final = "**"
_NONE: Final[_Form] = []
# Characters of a name compared in one step.
_STEP_LETTERS: Final = 64

# The value for the name and the target of a placeholder.
PlaceholderContent = Callable[[str, str], Any]

# Replaces a placeholder that cannot be resolved.
LEFT_OUT: Final = object()
_LONGEST_SHOWN: Final = 200

DEEPEST_LOCATION: Final = 10
# Files fetched at once before reading, and thus in memory together.
_FILES_AT_ONCE: Final = 100
# Most problems reported for one origin.
_MOST_PROBLEMS: Final = 500
_NO_ENTITY: Final = "holds no entity: write one, or take the file out of the targets"
_NOT_READ: Final = Missing(Outcome.TOO_LARGE, "it was not read")


class FileLocation(NamedTuple):
    """File in a repository: its path at a branch, tag or commit; HEAD is the default branch."""

    repository: str
    ref: str
    path: str

    @property
    def is_pattern(self) -> bool:
        """True if the path has wildcards."""
        return "*" in self.path


Located = Callable[[str], FileLocation | str]


class RepositoryFiles(Protocol):
    """Access to the files of a code host."""

    def located(self, url: str, *, is_content: bool = False) -> FileLocation | str:
        """The file at a URL, or the reason why reading is not allowed.

        Field content may be in more places than entities.
        """

    async def read(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, bytes | Missing]:
        """The content of each file, or the reason for a missing one."""

    async def paths(
        self, wanted: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], Sequence[str] | Missing]:
        """The paths of all files, by repository and branch."""


def resolve_target(target: str, base: FileLocation, located: Located) -> FileLocation | str:
    """The file named by a target in `base`, or the reason for not reading one.

    A target is a URL, which `located` resolves, or a path relative to the file; with a leading
    slash, relative to the repository.
    """
    text = target.strip()
    if not text or len(text) > _LONGEST_TARGET or not text.isprintable():
        return "the target is not a path or URL"
    if text.startswith("//") or "\\" in text:
        return "the target is not a path or URL"
    location: FileLocation | str
    if _URL.match(text):
        location = located(text)
    else:
        folder = "" if text.startswith("/") else posixpath.dirname(base.path)
        joined = posixpath.join(folder, unquote(text.removeprefix("./")).lstrip("/"))
        location = base._replace(path=joined)
    if isinstance(location, str):
        return location
    path = posixpath.normpath(location.path)
    if path in {".", ".."} or path.startswith(("../", "/")):
        return "the target is outside the repository"
    return location._replace(path=path)


def match_patterns(
    patterns: Sequence[str], paths: Iterable[str], budget: ReadingBudget
) -> dict[str, list[str]]:
    """The paths that each pattern matches and no earlier pattern does; raises OverBudgetError.

    `*` matches part of a name, `**` any folders.
    """
    forms: dict[str, list[_Form]] = {}
    for pattern in patterns:
        segments = pattern.split("/")
        if segments[-1] == _FOLDERS:
            segments.append("*")
        forms[pattern] = [
            None if segment == _FOLDERS else re.split(r"\*+", segment) for segment in segments
        ]
    found: dict[str, list[str]] = {pattern: [] for pattern in forms}
    for path in paths:
        names = path.split("/")
        for pattern, form in forms.items():
            fits, steps = _match_forms(form, names)
            budget.spend("steps", steps)
            if fits:
                found[pattern].append(path)
                break
    return {pattern: sorted(named) for pattern, named in found.items()}


def _match_forms(forms: Sequence[_Form], names: Sequence[str]) -> tuple[bool, int]:
    """True if the forms match the names, and the number of steps.

    Backtracks only to the last `**`, so no pattern takes long.
    """
    steps = _count_match_steps(forms[-1], names[-1])
    if not _fits_form(forms[-1], names[-1]):
        return False, steps
    at, name, after, retry = 0, 0, -1, 0
    while name < len(names):
        form = forms[at] if at < len(forms) else _NONE
        steps += _count_match_steps(form, names[name])
        if form is None:
            at, after, retry = at + 1, at + 1, name
        elif _fits_form(form, names[name]):
            at, name = at + 1, name + 1
        elif after >= 0:
            retry += 1
            at, name = after, retry
        else:
            return False, steps
    return all(form is None for form in forms[at:]), steps


def _count_match_steps(form: _Form, name: str) -> int:
    return len(form or ()) + 1 + len(name) // _STEP_LETTERS


def _fits_form(form: _Form, name: str) -> bool:
    """True if a name contains the texts of a form in order, each as early as possible."""
    if not form:
        return False
    first, *rest = form
    if not rest:
        return name == first
    if not name.startswith(first):
        return False
    at = len(first)
    *middle, last = rest
    for text in middle:
        at = name.find(text, at)
        if at < 0:
            return False
        at += len(text)
    return len(name) - len(last) >= at and name.endswith(last)


class PlaceholderError(Exception):
    """A placeholder that cannot be replaced; the message has the reason.

    `passing`: a later reading may succeed.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


def list_placeholder_targets(value: Any) -> Iterator[str]:
    """Every file named by placeholders in a value; malformed ones are skipped."""
    layer = [value]
    while layer:
        item = layer.pop()
        try:
            found = _parse_placeholder(item)
        except PlaceholderError:
            continue  # reported when the placeholders are replaced
        if found is not None:
            yield found[1]
        elif isinstance(item, list):
            layer += item
        elif isinstance(item, dict) and not _has_dollar(item):
            layer += item.values()


class FileValues:
    """The values of placeholders. Each file is read once; every use counts toward a budget.

    `content` returns a file, or the reason for a missing one.
    """

    def __init__(
        self, content: Callable[[FileLocation], bytes | Missing], budget: ReadingBudget
    ) -> None:
        self._content = content
        self._budget = budget
        self._read: dict[tuple[str, FileLocation], tuple[Any, int, int]] = {}

    def value(self, name: str, target: str, location: FileLocation) -> Any:
        """The value of a file, parsed as the placeholder's name says.

        Raises PlaceholderError for a file that cannot be parsed, and OverBudgetError.
        """
        key = name, location
        if key not in self._read:
            data = self._content(location)
            if isinstance(data, Missing):
                text = f"{shorten_target(target)}: {explain_missing_file(data)}"
                raise PlaceholderError(text, passing=data.passing)
            try:
                value = _DECODERS[name](text_files.utf_8(data))
            except (ValueError, RecursionError, yaml.YAMLError) as error:
                text = " ".join(str(error).split())
                raise PlaceholderError(
                    f"{shorten_target(target)} cannot be read as {name[1:]}: {text}"
                ) from None
            self._read[key] = value, len(data), count_values(value)
        value, size, parts = self._read[key]
        self._budget.spend("bytes", size)
        self._budget.spend("parts", parts)
        return value


def replace_placeholders(
    value: Any, content: PlaceholderContent, failed: Callable[[PlaceholderError], None]
) -> Any:
    """The value with each placeholder replaced by `content` of its name and target.

    Placeholders that cannot be replaced are reported to `failed` and left out; if the value itself
    is one, the result is LEFT_OUT. Parts without placeholders are returned uncopied. Raises any
    error of `content` except PlaceholderError.
    """
    try:
        if (found := _parse_placeholder(value)) is not None:
            return content(*found)
    except PlaceholderError as error:
        failed(error)
        return LEFT_OUT
    if isinstance(value, dict):
        if _has_dollar(value):
            return value
        members = {
            key: replace_placeholders(inner, content, failed) for key, inner in value.items()
        }
        if all(members[key] is inner for key, inner in value.items()):
            return value
        return {key: inner for key, inner in members.items() if inner is not LEFT_OUT}
    if isinstance(value, list):
        items = [replace_placeholders(inner, content, failed) for inner in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return [inner for inner in items if inner is not LEFT_OUT]
    return value


def explain_missing_file(missing: Missing) -> str:
    """The reason for an unread file, for users."""
    return "there is no such file" if missing.outcome is Outcome.NOT_FOUND else missing.reason


def shorten_target(target: str) -> str:
    """A target as shown in messages."""
    return target if len(target) <= _LONGEST_SHOWN else f"{target[:_LONGEST_SHOWN]}…"


def _has_dollar(value: dict[str, Any]) -> bool:
    return any(key.startswith("$") for key in value)


def _parse_placeholder(value: Any) -> tuple[str, str] | None:
    """The name and the target of a placeholder; None for anything else."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    [(name, target)] = value.items()
    if name not in _DECODERS:
        return None
    if not isinstance(target, str):
        raise PlaceholderError(f"{name} has to name a file")
    return name, target


def _decode_file_text(data: bytes) -> str:
    return data.decode()


_DECODERS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "$text": _decode_file_text,
    "$json": msgspec.json.decode,
    "$yaml": get_only_value,
    # Files of these kinds may refer to other files, which readers of the text resolve.
    "$openapi": _decode_file_text,
    "$asyncapi": _decode_file_text,
}


class RootFile(NamedTuple):
    """File that a reading begins with; all its entities belong to its origin."""

    origin: str
    location: FileLocation
    content: bytes


class ReadEntity(NamedTuple):
    """Entity of a file, with placeholders replaced or, if that fails, left out.

    `tentative`: a later reading may replace a placeholder that was left out.
    """

    location: FileLocation
    document: FileDocument
    entity: dict[str, Any]
    tentative: bool = False


@dataclass
class RepositoryReading:
    """Entities and problems of an origin's files; `whole`: no named file is missing.

    `cut_off` is the reason if the files exceed the origin's budget, as they would again.
    `failed`: a file was not read for a transient reason. `templates` are files with a template
    document. `uncertain`: cut off, or with locations of optional files.
    """

    entities: list[ReadEntity] = field(default_factory=list)
    problems: list[ReadingProblem] = field(default_factory=list)
    whole: bool = True
    cut_off: str = ""
    failed: bool = False
    uncertain: bool = False
    templates: set[FileLocation] = field(default_factory=set)

    @property
    def says_nothing(self) -> bool:
        """True if the files are empty, or have only locations that permanently lead nowhere."""
        if self.failed or self.uncertain or (self.entities and self.templates):
            return False
        return self.is_bare

    @property
    def is_bare(self) -> bool:
        """True if there is nothing but locations."""
        return all(_is_location(each.entity) for each in self.entities)


class _Step(NamedTuple):
    """File to read, the files that led to it, and the line that names it."""

    origin: str
    location: FileLocation
    path: tuple[FileLocation, ...] = ()
    line: int = 0
    optional: bool = False


@dataclass
class _Origin:
    """The state of an origin while reading; an ended origin is not read further."""

    budget: ReadingBudget
    reading: RepositoryReading = field(default_factory=RepositoryReading)
    seen: set[FileLocation] = field(default_factory=set)
    documents: list[tuple[FileLocation, FileDocument]] = field(default_factory=list)
    contents: dict[FileLocation, bytes | Missing] = field(default_factory=dict)
    ended: bool = False


async def read_catalog_files(
    roots: Iterable[RootFile], files: RepositoryFiles
) -> dict[str, RepositoryReading]:
    """The entities and problems of every origin."""
    reader = _CatalogFileReader(files)
    for some in slices(roots, _FILES_AT_ONCE):
        given = [(_Step(root.origin, root.location), root.content) for root in some]
        await asyncio.to_thread(reader.take, given)
    while reader.steps:
        await reader.next_level()
    await reader.replace_placeholders()
    return {origin: known.reading for origin, known in reader.origins.items()}


class _CatalogFileReader:
    def __init__(self, files: RepositoryFiles) -> None:
        self._files = files
        self._located = partial(files.located, is_content=True)
        self._shared = SharedBudget()
        self.origins: dict[str, _Origin] = {}
        self.steps: list[_Step] = []

    async def next_level(self) -> None:
        """Read the files named by the last level."""
        expanded: list[_Step] = []
        for _, of_origin in groupby(self.steps, key=lambda step: step.origin):
            expanded += await self._of_origin(list(of_origin))
        self.steps = []
        new = [step for step in expanded if self._is_new(step)]
        for some in slices(new, _FILES_AT_ONCE):
            steps = [step for step in some if not self._of(step).ended]
            contents = await self._files.read(list(dict.fromkeys(step.location for step in steps)))
            given = [(step, contents[step.location]) for step in steps]
            await asyncio.to_thread(self.take, given)

    def take(self, given: Iterable[tuple[_Step, bytes | Missing]]) -> None:
        """Add the documents of files, and note the targets of their locations."""
        for step, content in given:
            origin = self._of(step)
            if origin.ended:
                continue
            origin.seen.add(step.location)
            if isinstance(content, Missing):
                if step.optional and content.outcome is Outcome.NOT_FOUND:
                    origin.reading.uncertain = True
                else:
                    self._missing(step, step.location.path, content)
                continue
            try:
                self._take(origin, step, content)
            except OverBudgetError as error:
                self._cut_off(step, error)

    def _take(self, origin: _Origin, step: _Step, content: bytes) -> None:
        if not step.path:
            origin.budget.spend("files")
        result = parse_documents(content, origin.budget)
        for problem in result.problems:
            at = step._replace(path=(*step.path, step.location), line=problem.line)
            self._problem(at, problem.message, lost=problem.lost)
            if not problem.lost:
                origin.reading.templates.add(step.location)
        if step.path and not (result.documents or result.problems):
            at = step._replace(path=(*step.path, step.location), line=0)
            self._problem(at, _NO_ENTITY)
        for document in result.documents:
            origin.documents.append((step.location, document))
            if _is_location(document.value):
                self._follow(origin, step, document)

    def _follow(self, origin: _Origin, step: _Step, document: FileDocument) -> None:
        """Note the targets of a location for the next level."""
        spec = document.value.get("spec")
        spec = spec if isinstance(spec, dict) else {}
        line = document.lines.get("spec.targets") or document.lines.get(
            "spec.target", document.line
        )
        path = (*step.path, step.location)
        at = step._replace(path=path, line=line)
        if spec.get("type", "url") != "url":
            self._problem(at, "a location of a type other than url is not read")
            return
        targets = spec.get("targets")
        targets = targets if isinstance(targets, list) else []
        for target in (spec.get("target"), *targets):
            if not isinstance(target, str):
                continue
            origin.budget.spend("targets")
            found = resolve_target(target, step.location, self._files.located)
            if isinstance(found, str):
                self._problem(at, found)
            elif found in path:
                self._problem(at, "the target leads back to a file that leads here", lost=False)
            elif len(path) > DEEPEST_LOCATION:
                self._problem(at, f"locations are followed {DEEPEST_LOCATION} levels deep")
            else:
                optional = spec.get("presence") == "optional"
                self.steps.append(_Step(step.origin, found, path, line, optional))

    async def _of_origin(self, steps: Sequence[_Step]) -> list[_Step]:
        """The steps of one origin, with patterns expanded; none if the origin has ended."""
        if self._of(steps[0]).ended:
            return []
        trees: dict[tuple[str, str], dict[str, _Step]] = {}
        for step in steps:
            if step.location.is_pattern:
                patterns = trees.setdefault((step.location.repository, step.location.ref), {})
                patterns.setdefault(step.location.path, step)
        named: dict[FileLocation, list[_Step]] = {}
        for tree, patterns in trees.items():
            first = next(iter(patterns.values()))
            try:
                named |= await self._matched(tree, patterns)
            except OverBudgetError as error:
                self._cut_off(first, error)
                return []
        found = []
        for step in steps:
            if step.location.is_pattern:
                # A pattern may occur several times, but names its files once.
                found += named.pop(step.location, [])
            else:
                found.append(step)
        return found

    async def _matched(
        self, tree: tuple[str, str], patterns: Mapping[str, _Step]
    ) -> dict[FileLocation, list[_Step]]:
        """The steps to the files of a tree that match the patterns."""
        first = next(iter(patterns.values()))
        budget = self._of(first).budget
        budget.spend("trees")
        paths = (await self._files.paths([tree]))[tree]
        if isinstance(paths, Missing):
            for pattern, step in patterns.items():
                self._missing(step, pattern, paths)
            return {}
        matched = await asyncio.to_thread(match_patterns, list(patterns), paths, budget)
        return {
            step.location: [
                step._replace(location=location)
                for path in matched[pattern]
                if (location := step.location._replace(path=path)) not in step.path
            ]
            for pattern, step in patterns.items()
        }

    def _is_new(self, step: _Step) -> bool:
        """True for a file that this origin has not read yet, within the file limit."""
        origin = self._of(step)
        if step.location in origin.seen or origin.ended:
            return False
        origin.seen.add(step.location)
        return self._may(origin, step)

    def _may(self, origin: _Origin, step: _Step) -> bool:
        """Count a file; false for more files than an origin may have."""
        was_enough = origin.budget.files < 0
        try:
            origin.budget.spend("files")
        except OverBudgetError as error:
            if not was_enough:
                self._problem(step, str(error))
            return False
        return True

    def _of(self, step: _Step) -> _Origin:
        if step.origin not in self.origins:
            self.origins[step.origin] = _Origin(ReadingBudget(shared=self._shared))
        return self.origins[step.origin]

    def _cut_off(self, step: _Step, error: OverBudgetError) -> None:
        """End the reading of an origin, keeping results so far."""
        origin = self._of(step)
        origin.ended = origin.reading.uncertain = True
        origin.contents.clear()
        origin.reading.cut_off = "" if error.is_shared else str(error)
        self._problem(step, str(error))

    def _missing(self, step: _Step, path: str, missing: Missing) -> None:
        """Note a file that was not read, or the files of a pattern."""
        reading = self._of(step).reading
        reading.failed |= missing.passing
        self._problem(step, f"{path}: {explain_missing_file(missing)}")

    def _problem(self, step: _Step, message: str, *, lost: bool = True) -> None:
        """Note a problem at the file that led to this one."""
        reading = self._of(step).reading
        reading.whole = reading.whole and not lost
        if len(reading.problems) > _MOST_PROBLEMS:
            return
        if len(reading.problems) == _MOST_PROBLEMS:
            message = f"has more than {_MOST_PROBLEMS} problems"
        location = step.path[-1] if step.path else step.location
        place = location.path
        if not step.origin.endswith(f"/{location.repository}"):
            place = f"{location.repository}/{place}"
        reading.problems.append(ReadingProblem(step.origin, message, place, step.line))

    async def replace_placeholders(self) -> None:
        """Make the entities of all documents, with the files that their placeholders name."""
        wanted = await asyncio.to_thread(self._named_files)
        for some in slices(wanted, _FILES_AT_ONCE):
            steps = [step for step in some if not self._of(step).ended]
            contents = await self._files.read(list(dict.fromkeys(step.location for step in steps)))
            for step in steps:
                self._keep(step, contents[step.location])
        await asyncio.to_thread(self._finish)

    def _named_files(self) -> list[_Step]:
        """A step to each file that placeholders name, for each origin."""
        wanted: list[_Step] = []
        for name, origin in self.origins.items():
            known: set[FileLocation] = set()
            for location, document in origin.documents:
                step = _Step(name, location, (location,), document.line)
                for target in dict.fromkeys(list_placeholder_targets(document.value)):
                    found = resolve_target(target, location, self._located)
                    if isinstance(found, str) or found in known:
                        continue
                    known.add(found)
                    if not self._may(origin, step):
                        break
                    wanted.append(step._replace(location=found))
        return wanted

    def _keep(self, step: _Step, content: bytes | Missing) -> None:
        """Keep a file for the placeholders of an origin; the file counts as read."""
        origin = self._of(step)
        if origin.ended:
            return
        if isinstance(content, Missing) and content.passing:
            origin.reading.failed = True
        try:
            if isinstance(content, bytes):
                origin.budget.spend("bytes", len(content))
        except OverBudgetError as error:
            self._cut_off(step, error)
        else:
            origin.contents[step.location] = content

    def _finish(self) -> None:
        """Make the entities of every origin."""
        for name, origin in self.origins.items():
            files = _PlaceholderFiles(origin, self._located)
            for location, document in origin.documents:
                step = _Step(name, location, (), document.line)
                failed: list[PlaceholderError] = []
                try:
                    entity = replace_placeholders(document.value, files.at(location), failed.append)
                except OverBudgetError as error:
                    if not origin.ended:
                        self._cut_off(step, error)
                    continue
                for problem in failed:
                    self._problem(step, str(problem), lost=entity is LEFT_OUT)
                if entity is not LEFT_OUT:
                    tentative = any(problem.passing for problem in failed)
                    read = ReadEntity(location, document, entity, tentative)
                    origin.reading.entities.append(read)
            origin.contents.clear()


class _PlaceholderFiles:
    """The values of placeholders in an origin's documents."""

    def __init__(self, origin: _Origin, located: Located) -> None:
        self._origin = origin
        self._located = located
        self._values = FileValues(self._content, origin.budget)

    def at(self, base: FileLocation) -> PlaceholderContent:
        """The content for placeholders in a file."""

        def content(name: str, target: str) -> Any:
            location = resolve_target(target, base, self._located)
            if isinstance(location, str):
                raise PlaceholderError(f"{shorten_target(target)}: {location}")
            return self._values.value(name, target, location)

        return content

    def _content(self, location: FileLocation) -> bytes | Missing:
        return self._origin.contents.get(location, _NOT_READ)


def _is_location(entity: Mapping[str, Any]) -> bool:
    return str(entity.get("kind", "")).lower() == "location"
