"""Files at a code host, and the ones that targets and placeholders name."""

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol
from urllib.parse import unquote

from factbook.importers.catalog_info.documents import ReadingBudget
from factbook.outbound.outcomes import Missing

_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_LONGEST: Final = 1_000


class FileLocation(NamedTuple):
    """File in a repository: its path at a branch, tag or commit; HEAD is the default branch."""

    repository: str
    ref: str
    path: str

    @property
    def is_pattern(self) -> bool:
        """True if the path has signs for any files."""
        return "*" in self.path


Located = Callable[[str], FileLocation | str]


class RepositoryFiles(Protocol):
    """Access to the files of a code host."""

    def located(self, url: str, *, is_content: bool = False) -> FileLocation | str:
        """The file at a URL, or the reason that it may not be read.

        Content of a field may be at more places than entities.
        """

    async def read(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, bytes | Missing]:
        """The content of each of the files, or the reason that there is none."""

    async def paths(
        self, wanted: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], Sequence[str] | Missing]:
        """The paths of all files, by repository and branch."""


def resolved(target: str, base: FileLocation, located: Located) -> FileLocation | str:
    """The file that a target in `base` names, or the reason that it is not read.

    A target is a URL, which `located` reads, or a path relative to the file; one that begins with a
    slash is relative to the repository.
    """
    text = target.strip()
    if not text or len(text) > _LONGEST or not text.isprintable():
        return "the target is not a path or URL"
    if text.startswith("//") or "\\" in text:
        return "the target is not a path or URL"
    found: FileLocation | str
    if _URL.match(text):
        found = located(text)
    else:
        folder = "" if text.startswith("/") else posixpath.dirname(base.path)
        joined = posixpath.join(folder, unquote(text.removeprefix("./")).lstrip("/"))
        found = base._replace(path=joined)
    return found if isinstance(found, str) else _inside(found)


def _inside(location: FileLocation) -> FileLocation | str:
    """The location with its path in plain form, unless that leaves the repository."""
    path = posixpath.normpath(location.path)
    if path in {".", ".."} or path.startswith(("../", "/")):
        return "the target is outside the repository"
    return location._replace(path=path)


def matching(
    patterns: Sequence[str], paths: Iterable[str], budget: ReadingBudget
) -> dict[str, list[str]]:
    """The paths that each pattern names and none before it; raises OverBudgetError.

    `*` stands for part of a name, `**` for any folders.
    """
    forms = {pattern: _forms(pattern) for pattern in dict.fromkeys(patterns)}
    found: dict[str, list[str]] = {pattern: [] for pattern in forms}
    for path in paths:
        names = path.split("/")
        for pattern, form in forms.items():
            fits, steps = _matches(form, names)
            budget.spend("steps", steps)
            if fits:
                found[pattern].append(path)
                break
    return {pattern: sorted(named) for pattern, named in found.items()}


# The texts of a name between its stars; none stand for any folders.
_Form = list[str] | None


def _forms(pattern: str) -> list[_Form]:
    names = pattern.split("/")
    if names[-1] == _FOLDERS:
        names.append("*")
    return [None if name == _FOLDERS else re.split(r"\*+", name) for name in names]


def _matches(forms: Sequence[_Form], names: Sequence[str]) -> tuple[bool, int]:
    """True if the forms match the names, and the steps that this took.

    Goes back to the last form for any folders alone, so that no pattern takes long.
    """
    steps = _steps(forms[-1], names[-1])
    if not _fits(forms[-1], names[-1]):
        return False, steps
    at, name, after, retry = 0, 0, -1, 0
    while name < len(names):
        form = forms[at] if at < len(forms) else _NONE
        steps += _steps(form, names[name])
        if form is None:
            at, after, retry = at + 1, at + 1, name
        elif _fits(form, names[name]):
            at, name = at + 1, name + 1
        elif after >= 0:
            retry += 1
            at, name = after, retry
        else:
            return False, steps
    return all(form is None for form in forms[at:]), steps


def _steps(form: _Form, name: str) -> int:
    return len(form or ()) + 1 + len(name) // _STEP_LETTERS


def _fits(form: _Form, name: str) -> bool:
    """True if the texts of a form are in a name, in their order; each as early as it can be."""
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


_FOLDERS: Final = "**"
_NONE: Final[_Form] = []
# Letters of a name that are compared in one step.
_STEP_LETTERS: Final = 64
