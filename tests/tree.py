"""The files of this repository, in a clone and in an unpacked archive of the sources."""

import os
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path


def files(root: Path) -> list[Path]:
    """The files that Git has or would add.

    Without Git, or if Git refuses because another user owns the clone, all files that `.gitignore`
    doesn't name. Raises LookupError if there are none.
    """
    found = _listed(root) or list(_walked(root))
    if not found:
        raise LookupError(f"There are no files in {root}")
    return found


def _listed(root: Path) -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return [root / name for name in done.stdout.decode().split("\0") if name]


def _walked(root: Path) -> Iterator[Path]:
    ignored = [line for line in (root / ".gitignore").read_text().split() if line[0] not in "#!"]
    for folder, folders, names in os.walk(root):
        place = "/" + Path(folder).relative_to(root).as_posix().removeprefix(".")
        place = place.rstrip("/") + "/"
        folders[:] = [
            name
            for name in folders
            if name != ".git" and not _is_ignored(f"{place}{name}/", ignored)
        ]
        for name in names:
            if not _is_ignored(f"{place}{name}", ignored):
                yield Path(folder, name)


def _is_ignored(path: str, patterns: list[str]) -> bool:
    """Whether a path, from the root and with a slash behind a folder, is named by a pattern.

    Only what this repository's file has: names of folders and files anywhere or, after a slash, at
    the root.
    """
    name = "/" + path.rstrip("/").rpartition("/")[2] + ("/" if path.endswith("/") else "")
    at_root = name == path
    return any(
        (at_root if pattern.startswith("/") else True)
        and fnmatch(name, pattern if pattern.startswith("/") else f"/{pattern}")
        for pattern in patterns
    )
