"""Reader of catalog files: from the root file of each repository to its entities.

All repositories are read together, level by level, so that the files of a level are fetched in few
requests. Files are at most ten levels below the root. Whatever grows with what files hold is done
on a thread and counts towards the budget of its origin; an origin that exceeds it is cut off.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

from factbook.catalog.piecewise import slices
from factbook.importers.catalog_info import placeholders
from factbook.importers.catalog_info.documents import (
    FileDocument,
    OverBudgetError,
    ReadingBudget,
    SharedBudget,
    parsed,
)
from factbook.importers.catalog_info.locations import (
    FileLocation,
    Located,
    RepositoryFiles,
    matching,
    resolved,
)
from factbook.importers.catalog_info.placeholders import FileValues, PlaceholderError, shown
from factbook.importers.snapshot import ReadingProblem
from factbook.outbound.outcomes import Missing, Outcome

DEEPEST: Final = 10
# Files that are fetched before they are read, and so are in memory at once.
_AT_ONCE: Final = 100
# The most problems that are reported for one origin.
_MOST_PROBLEMS: Final = 500
_NO_ENTITY: Final = "holds no entity: write one, or take the file out of the targets"
_NOT_READ: Final = Missing(Outcome.TOO_LARGE, "it was not read")


class RootFile(NamedTuple):
    """File that a reading begins with; what comes of it belongs to its origin."""

    origin: str
    location: FileLocation
    content: bytes


class ReadEntity(NamedTuple):
    """Entity of a file, its placeholders replaced, or left out where they cannot be.

    It is `tentative` if another reading may replace one that is left out.
    """

    location: FileLocation
    document: FileDocument
    entity: dict[str, Any]
    tentative: bool = False


@dataclass
class RepositoryReading:
    """Entities and problems of an origin's files; `whole`: nothing that they name is missing.

    `cut_off` is the reason why reading the same files again would end in the same way: they exceed
    the budget of the origin. `failed`: a file was not read for a passing reason.
    `templates` are files with a document that is one. It is `uncertain` if it was cut off, or has
    locations whose files need not be there.
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
        """True if the files hold nothing, or locations that lead to nothing, and will again."""
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
    """The state of an origin while it is read; nothing more is read of one that has ended."""

    budget: ReadingBudget
    reading: RepositoryReading = field(default_factory=RepositoryReading)
    seen: set[FileLocation] = field(default_factory=set)
    documents: list[tuple[FileLocation, FileDocument]] = field(default_factory=list)
    contents: dict[FileLocation, bytes | Missing] = field(default_factory=dict)
    ended: bool = False


async def read(roots: Iterable[RootFile], files: RepositoryFiles) -> dict[str, RepositoryReading]:
    """The entities and problems of every origin."""
    reader = _CatalogFileReader(files)
    for some in slices(roots, _AT_ONCE):
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
        """Read the files that the last level names."""
        steps = await self._without_patterns(self.steps)
        self.steps = []
        wanted = [step for step in steps if self._is_new(step)]
        for some in slices(wanted, _AT_ONCE):
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
        result = parsed(content, origin.budget)
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
            self._problem(at, "a location of another type than url is not read")
            return
        for target in _targets(spec):
            origin.budget.spend("targets")
            found = resolved(target, step.location, self._files.located)
            if isinstance(found, str):
                self._problem(at, found)
            elif found in path:
                self._problem(at, "the target leads back to a file that leads here", lost=False)
            elif len(path) > DEEPEST:
                self._problem(at, f"locations are followed {DEEPEST} levels deep")
            else:
                optional = spec.get("presence") == "optional"
                self.steps.append(_Step(step.origin, found, path, line, optional))

    async def _without_patterns(self, steps: Sequence[_Step]) -> list[_Step]:
        """The steps with a step for each file that a pattern names."""
        found: list[_Step] = []
        for _, several in groupby(steps, key=lambda step: step.origin):
            found += await self._of_origin(list(several))
        return found

    async def _of_origin(self, steps: Sequence[_Step]) -> list[_Step]:
        """The same of one origin; none of one that has ended."""
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
                # One pattern may stand in several places, and names its files once.
                found += named.pop(step.location, [])
            else:
                found.append(step)
        return found

    async def _matched(
        self, tree: tuple[str, str], patterns: Mapping[str, _Step]
    ) -> dict[FileLocation, list[_Step]]:
        """The steps to the files of a tree by the patterns that name them."""
        first = next(iter(patterns.values()))
        budget = self._of(first).budget
        budget.spend("trees")
        paths = (await self._files.paths([tree]))[tree]
        if isinstance(paths, Missing):
            for pattern, step in patterns.items():
                self._missing(step, pattern, paths)
            return {}
        matched = await asyncio.to_thread(matching, list(patterns), paths, budget)
        return {
            step.location: [
                step._replace(location=location)
                for path in matched[pattern]
                if (location := step.location._replace(path=path)) not in step.path
            ]
            for pattern, step in patterns.items()
        }

    def _is_new(self, step: _Step) -> bool:
        """True for a file that this origin has not read, unless it has read too many."""
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
        """End the reading of an origin, with what was read of it so far."""
        origin = self._of(step)
        origin.ended = origin.reading.uncertain = True
        origin.contents.clear()
        origin.reading.cut_off = "" if error.is_shared else str(error)
        self._problem(step, str(error))

    def _missing(self, step: _Step, path: str, missing: Missing) -> None:
        """Note a file that was not read, or the files of a pattern."""
        reading = self._of(step).reading
        reading.failed |= missing.passing
        self._problem(step, f"{path}: {placeholders.cause(missing)}")

    def _problem(self, step: _Step, message: str, *, lost: bool = True) -> None:
        """Note a problem at the file that led to this one."""
        reading = self._of(step).reading
        reading.whole = reading.whole and not lost
        if len(reading.problems) > _MOST_PROBLEMS:
            return
        if len(reading.problems) == _MOST_PROBLEMS:
            message = f"has more than {_MOST_PROBLEMS} problems"
        place = _file(step.origin, step.path[-1] if step.path else step.location)
        reading.problems.append(ReadingProblem(step.origin, message, place, step.line))

    async def replace_placeholders(self) -> None:
        """Make the entities of all documents, with the files that their placeholders name."""
        wanted = await asyncio.to_thread(self._named_files)
        for some in slices(wanted, _AT_ONCE):
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
                for target in dict.fromkeys(placeholders.targets(document.value)):
                    found = resolved(target, location, self._located)
                    if isinstance(found, str) or found in known:
                        continue
                    known.add(found)
                    if not self._may(origin, step):
                        break
                    wanted.append(step._replace(location=found))
        return wanted

    def _keep(self, step: _Step, content: bytes | Missing) -> None:
        """Keep a file for the placeholders of an origin, which counts as read."""
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
                    entity = placeholders.replaced(
                        document.value, files.at(location), failed.append
                    )
                except OverBudgetError as error:
                    if not origin.ended:
                        self._cut_off(step, error)
                    continue
                for problem in failed:
                    self._problem(step, str(problem), lost=entity is placeholders.LEFT_OUT)
                if entity is not placeholders.LEFT_OUT:
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

    def at(self, base: FileLocation) -> placeholders.Content:
        """The content for placeholders in a file."""

        def content(name: str, target: str) -> Any:
            location = resolved(target, base, self._located)
            if isinstance(location, str):
                raise PlaceholderError(f"{shown(target)}: {location}")
            return self._values.value(name, target, location)

        return content

    def _content(self, location: FileLocation) -> bytes | Missing:
        return self._origin.contents.get(location, _NOT_READ)


def _is_location(entity: Mapping[str, Any]) -> bool:
    return str(entity.get("kind", "")).lower() == "location"


def _targets(spec: Mapping[str, Any]) -> Iterable[str]:
    """The texts in `target` and `targets`."""
    listed = spec.get("targets")
    for target in (spec.get("target"), *(listed if isinstance(listed, list) else ())):
        if isinstance(target, str):
            yield target


def _file(origin: str, location: FileLocation) -> str:
    """The path of a file, after its repository where that is not the origin's own."""
    own = origin.endswith(f"/{location.repository}")
    return location.path if own else f"{location.repository}/{location.path}"
