"""Entities in a working tree, as an import of it would read them, and the paths of its files."""

import asyncio
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from factbook.errors import InputError
from factbook.importers.catalog_info import reader
from factbook.importers.catalog_info.documents import LARGEST
from factbook.importers.catalog_info.locations import FileLocation
from factbook.importers.catalog_info.reader import RootFile
from factbook.importers.code_host.kind import CATALOG_FILES
from factbook.outbound.outcomes import Missing, Outcome

# The file that a tree names when it is no repository; nothing looks at it.
_HERE: Final = "tree"
_HEAD: Final = "HEAD"
# Files that a reading begins with.
_MOST_ROOTS: Final = 5_000
_OUTSIDE: Final = Missing(Outcome.NOT_FOUND, "it is not in the tree")


class TreeEntity(NamedTuple):
    """Entity of a file, and its place, e.g. `catalog-info.yaml line 12`."""

    entity: dict[str, Any]
    origin: str


class TreeContent(NamedTuple):
    """Entities of a tree, what could not be read of it, and the paths of all files.

    `paths` is None for a folder inside a repository, as facts are about the whole of that.
    """

    entities: list[TreeEntity]
    problems: list[str]
    paths: list[str] | None


def content(place: str, named: Sequence[str] = ()) -> TreeContent:
    """The content of a tree, from its catalog files and those named; raises InputError."""
    root = Path(place)
    if not root.is_dir():
        raise InputError(f"{place} is not a directory.")
    return asyncio.run(_content(root, named))


async def _content(root: Path, named: Sequence[str]) -> TreeContent:
    tracked = await _tracked(root)
    paths = sorted(_walked(root) if tracked is None else tracked)
    catalog = [path for path in paths if path.rpartition("/")[2].lower() in CATALOG_FILES]
    roots = dict.fromkeys([*(_below(root, one) for one in named), *catalog])
    files = _TreeFiles(root, paths, roots)
    if not roots:
        raise InputError(
            f"There is no {' or '.join(CATALOG_FILES)} in {root}. --catalog names others."
        )
    problems: list[str] = []

    def given() -> Iterator[RootFile]:
        for path in islice(roots, _MOST_ROOTS):
            found = files.content(path)
            if isinstance(found, Missing):
                problems.append(f"{path} cannot be read: {found.detail}.")
            else:
                yield RootFile(path, FileLocation(_HERE, _HEAD, path), found)

    if len(roots) > _MOST_ROOTS:
        problems.append(f"More than {_MOST_ROOTS:,} catalog files are not read.")
    entities = dict[str, TreeEntity]()
    for reading in (await reader.read(given(), files)).values():
        problems += [_told(one.file, one.line, one.message) for one in reading.problems]
        for found in reading.entities:
            origin = f"{found.location.path} line {found.document.line}"
            entities.setdefault(origin, TreeEntity(found.entity, origin))
    is_part = tracked is not None and not (root / ".git").exists()
    return TreeContent(
        list(entities.values()), list(dict.fromkeys(problems)), None if is_part else paths
    )


class _TreeFiles:
    """Access to the files of a tree, and to nothing that lies beside them.

    The folder of a pipeline has secrets that are none of the tree, such as the token in
    `.git/config`, and who writes a catalog file may name any path.
    """

    def __init__(self, root: Path, paths: Sequence[str], roots: Iterable[str]) -> None:
        self._root = Path(os.path.realpath(root))
        self._paths = paths
        self._files = {str(self._root / path) for path in (*paths, *roots)}

    def located(self, url: str, *, is_content: bool = False) -> FileLocation | str:
        """No file: an address is not looked for in the tree."""
        return f"{url} is an address, and not a file of this tree"

    async def read(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, bytes | Missing]:
        """The content of each of the files."""
        return {one: self.content(one.path) for one in wanted}

    async def paths(
        self, wanted: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], Sequence[str] | Missing]:
        """The paths of all files."""
        return dict.fromkeys(wanted, self._paths)

    def content(self, path: str) -> bytes | Missing:
        """The content of a file, or the reason that there is none."""
        file = Path(os.path.realpath(self._root / path))
        # A link may lead anywhere on this machine.
        if str(file) not in self._files:
            return _OUTSIDE
        try:
            if not file.is_file():
                return _OUTSIDE
            with file.open("rb") as stream:
                return stream.read(LARGEST + 1)
        except OSError as error:
            return Missing(Outcome.DENIED, str(error.strerror))


async def _tracked(root: Path) -> set[str] | None:
    """The files that git has or would add; None where there is no repository.

    Those that git has count whatever its files of what to ignore say, and where a sparse checkout
    left them out. Those that it ignores are none of the tree, and may be secrets of the pipeline.
    """
    if not _is_in_repository(root):
        return None
    kept = await _listed(root, "--cached") - await _listed(root, "--deleted")
    return kept | await _listed(root, "--others", "--exclude-standard")


def _is_in_repository(root: Path) -> bool:
    return any((folder / ".git").exists() for folder in (root, *root.resolve().parents))


async def _listed(root: Path, *which: str) -> set[str]:
    path = shutil.which("git")
    if path is None:
        raise InputError(f"{root} is of a git repository, and there is no git to list its files.")
    process = await asyncio.create_subprocess_exec(
        *(path, "-c", "core.fsmonitor=false", "ls-files", "-z", *which),
        cwd=root,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, error = await process.communicate()
    if process.returncode:
        # Without it, files that the repository ignores would be taken for its own.
        told = " ".join(error.decode("utf-8", "replace").split())
        raise InputError(f"git cannot list the files of {root}: {told}")
    # One with a slash at its end is another repository, inside this one.
    return {name for name in os.fsdecode(output).split("\0") if name and name[-1] != "/"}


def _walked(root: Path) -> Iterator[str]:
    """Every file below a folder that is no repository; links are not followed."""
    for folder, _, names in os.walk(root):
        yield from (Path(folder, name).relative_to(root).as_posix() for name in names)


def _below(root: Path, file: str) -> str:
    """The path of a named file in the tree; raises InputError."""
    try:
        return Path(os.path.realpath(file)).relative_to(os.path.realpath(root)).as_posix()
    except ValueError:
        raise InputError(f"{file} is not below {root}.") from None


def _told(file: str, line: int, message: str) -> str:
    return f"{file.removeprefix(f'{_HERE}/')}{f' line {line}' if line else ''}: {message}"
