"""Files at a code host, and the ones that targets and placeholders name."""

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Protocol
from urllib.parse import unquote

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

    def located(self, url: str) -> FileLocation | str:
        """The file at a URL, or the reason that it may not be read."""

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


def matching(pattern: str, paths: Iterable[str]) -> list[str]:
    """The paths that a pattern names: `*` stands for part of a name, `**` for any folders."""
    names = pattern.split("/")
    if names[-1] == _FOLDERS:
        names.append("*")
    forms = [None if name == _FOLDERS else _form(name) for name in names]
    return sorted(path for path in paths if _matches(forms, path.split("/")))


def _matches(forms: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    """True if the forms match the names; None matches any number of them.

    Goes back to the last None alone, so that no pattern takes long.
    """
    at, name, after, retry = 0, 0, -1, 0
    while name < len(names):
        form = forms[at] if at < len(forms) else _NONE
        if form is None:
            at, after, retry = at + 1, at + 1, name
        elif form.fullmatch(names[name]):
            at, name = at + 1, name + 1
        elif after >= 0:
            retry += 1
            at, name = after, retry
        else:
            return False
    return all(form is None for form in forms[at:])


@lru_cache(maxsize=256)
def _form(name: str) -> re.Pattern[str]:
    """Form of one name; each star takes as little as it can, for good, which is enough."""
    first, *rest = [re.escape(text) for text in re.split(r"\*+", name)]
    if not rest:
        return re.compile(first)
    *middle, last = rest
    return re.compile(first + "".join(f"(?>.*?{text})" for text in middle) + f".*{last}")


_FOLDERS: Final = "**"
_NONE: Final = re.compile(r"(?!)")
