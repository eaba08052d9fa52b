"""Reader of catalog files: from the root file of each repository to its entities.

All repositories are read together, level by level, so that the files of a level are fetched in few
requests. One reading has at most 1,000 files, at most ten levels below the root.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from factbook.importers.catalog_info import placeholders
from factbook.importers.catalog_info.documents import FileDocument, parsed
from factbook.importers.catalog_info.locations import (
    FileLocation,
    RepositoryFiles,
    matching,
    resolved,
)
from factbook.importers.catalog_info.placeholders import PlaceholderError
from factbook.importers.snapshot import ReadingProblem
from factbook.outbound.outcomes import Missing, Outcome

DEEPEST: Final = 10
MOST_FILES: Final = 1_000
_NOT_READ: Final = Missing(Outcome.TOO_LARGE, f"more than {MOST_FILES:,} files are not read")


class RootFile(NamedTuple):
    """File that a reading begins with; what comes of it belongs to its origin."""

    origin: str
    location: FileLocation
    content: bytes


class ReadEntity(NamedTuple):
    """Entity of a file, its placeholders replaced."""

    location: FileLocation
    document: FileDocument
    entity: dict[str, Any]


@dataclass
class RepositoryReading:
    """Entities and problems of an origin's files; `whole`: nothing that they name is missing."""

    entities: list[ReadEntity] = field(default_factory=list)
    problems: list[ReadingProblem] = field(default_factory=list)
    whole: bool = True


class _Step(NamedTuple):
    """File to read, the files that led to it, and the line that names it."""

    origin: str
    location: FileLocation
    path: tuple[FileLocation, ...] = ()
    line: int = 0
    optional: bool = False


async def read(roots: Sequence[RootFile], files: RepositoryFiles) -> dict[str, RepositoryReading]:
    """The entities and problems of every origin."""
    reader = _CatalogFileReader(files)
    for root in roots:
        reader.take(_Step(root.origin, root.location), root.content)
    while reader.steps:
        await reader.next_level()
    await reader.replace_placeholders()
    return reader.found


class _CatalogFileReader:
    def __init__(self, files: RepositoryFiles) -> None:
        self._files = files
        self._count: Counter[str] = Counter()
        self._seen: set[tuple[str, FileLocation]] = set()
        self._documents: list[tuple[str, FileLocation, FileDocument]] = []
        self.found: dict[str, RepositoryReading] = {}
        self.steps: list[_Step] = []

    async def next_level(self) -> None:
        """Read the files that the last level names."""
        steps = await self._without_patterns(self.steps)
        self.steps = []
        wanted = [step for step in steps if self._is_new(step)]
        contents = await self._files.read(list(dict.fromkeys(step.location for step in wanted)))
        for step in wanted:
            content = contents[step.location]
            if isinstance(content, bytes):
                self.take(step, content)
            elif not (step.optional and content.outcome is Outcome.NOT_FOUND):
                self._problem(step, f"{step.location.path}: {_reason(content)}")

    def take(self, step: _Step, content: bytes) -> None:
        """Add the documents of a file, and go on with the targets of its locations."""
        reading = self.found.setdefault(step.origin, RepositoryReading())
        self._seen.add((step.origin, step.location))
        result = parsed(content)
        for problem in result.problems:
            place = _file(step.origin, step.location)
            text = ReadingProblem(step.origin, problem.message, place, problem.line)
            reading.problems.append(text)
            reading.whole = False
        for document in result.documents:
            self._documents.append((step.origin, step.location, document))
            if str(document.value.get("kind", "")).lower() == "location":
                self._follow(step, document)

    def _follow(self, step: _Step, document: FileDocument) -> None:
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
        patterns = [step.location for step in steps if step.location.is_pattern]
        trees = {(one.repository, one.ref) for one in patterns}
        known = await self._files.paths(sorted(trees)) if trees else {}
        found = []
        for step in steps:
            location = step.location
            if not location.is_pattern:
                found.append(step)
                continue
            paths = known[location.repository, location.ref]
            if isinstance(paths, Missing):
                self._problem(step, f"{location.path}: {_reason(paths)}")
                continue
            names = (location._replace(path=path) for path in matching(location.path, paths))
            found += [step._replace(location=name) for name in names if name not in step.path]
        return found

    def _is_new(self, step: _Step) -> bool:
        """True for a file that this origin has not read, unless it has read too many."""
        key = (step.origin, step.location)
        if key in self._seen:
            return False
        self._seen.add(key)
        return self._may(step)

    def _may(self, step: _Step) -> bool:
        """Count a file; false for more files than an origin may have."""
        self._count[step.origin] += 1
        if self._count[step.origin] == MOST_FILES:
            self._problem(step, _NOT_READ.detail)
        return self._count[step.origin] < MOST_FILES

    def _problem(self, step: _Step, message: str, *, lost: bool = True) -> None:
        """Note a problem at the file that led to this one."""
        reading = self.found.setdefault(step.origin, RepositoryReading())
        place = _file(step.origin, step.path[-1] if step.path else step.location)
        reading.problems.append(ReadingProblem(step.origin, message, place, step.line))
        reading.whole = reading.whole and not lost

    async def replace_placeholders(self) -> None:
        """Make the entities of all documents, with the files that their placeholders name."""
        wanted: dict[FileLocation, None] = {}
        for origin, location, document in self._documents:
            for found in self._named(location, document).values():
                step = _Step(origin, location, (location,), document.line)
                if isinstance(found, FileLocation) and found not in wanted and self._may(step):
                    wanted[found] = None
        contents = await self._files.read(list(wanted)) if wanted else {}
        for origin, location, document in self._documents:
            self._finish(origin, location, document, contents)

    def _named(
        self, location: FileLocation, document: FileDocument
    ) -> dict[str, FileLocation | str]:
        """The file of each placeholder in a document, or the reason that there is none."""
        try:
            found = list(placeholders.targets(document.value))
        except PlaceholderError:
            return {}  # which is told when they are replaced
        return {target: resolved(target, location, self._files.located) for target in found}

    def _finish(
        self,
        origin: str,
        location: FileLocation,
        document: FileDocument,
        contents: Mapping[FileLocation, bytes | Missing],
    ) -> None:
        named, reading = self._named(location, document), self.found[origin]

        def content(target: str) -> bytes:
            found = named[target]
            data = found if isinstance(found, str) else contents.get(found, _NOT_READ)
            if isinstance(data, bytes):
                return data
            reason = data if isinstance(data, str) else _reason(data)
            raise PlaceholderError(f"{target}: {reason}")

        try:
            entity = placeholders.replaced(document.value, content)
        except PlaceholderError as error:
            place = _file(origin, location)
            reading.problems.append(ReadingProblem(origin, str(error), place, document.line))
            reading.whole = False
        else:
            reading.entities.append(ReadEntity(location, document, entity))


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


def _reason(missing: Missing) -> str:
    return "there is no such file" if missing.outcome is Outcome.NOT_FOUND else missing.reason
