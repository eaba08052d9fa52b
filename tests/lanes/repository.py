"""What Git knows about a checkout."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests import tree

# The commit on which `.ci/run full` passed last.
RECORD: Final = ".ci/full"
_MAIN: Final = ("upstream/main", "origin/main", "main")


class GitError(Exception):
    """Git can't answer, for the reason that it gives."""


@dataclass(frozen=True)
class Repository:
    """A checkout. Paths are relative to its root."""

    root: Path = Path(__file__).parents[2]

    def git(self, *words: str) -> str:
        """Return what Git prints. The checkout may belong to another user."""
        command = ["git", "-c", f"safe.directory={self.root}", *words]
        try:
            done = subprocess.run(
                command, cwd=self.root, capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            raise GitError("git is not installed") from None
        if done.returncode:
            first = done.stderr.strip().splitlines()[:1]
            raise GitError(first[0] if first else f"git {words[0]} failed")
        return done.stdout

    def _paths(self, *words: str) -> set[str]:
        return {path for path in self.git(*words, "-z").split("\0") if path}

    def uncommitted(self) -> set[str]:
        """Return the paths that differ from the last commit, untracked files among them."""
        return self.changed_since("HEAD")

    def changed_since(self, commit: str) -> set[str]:
        """Return the paths that differ from a commit. A renamed file has two."""
        return self._paths("diff", "--name-only", "--no-renames", commit) | self._paths(
            "ls-files", "--others", "--exclude-standard"
        )

    def files(self) -> list[str]:
        """Return all files of the checkout but for ignored ones."""
        listed = (path for path in tree.files(self.root) if os.path.lexists(path))
        return sorted(path.relative_to(self.root).as_posix() for path in listed)

    def work_in_progress(self) -> tuple[str, set[str]]:
        """Return what a developer works on: the words for it, and the paths that changed.

        That is whatever isn't on main yet, or else the last commit.
        """
        for main in _MAIN:
            try:
                base = self.git("merge-base", "HEAD", main).strip()
            except GitError:
                continue
            if changed := self.changed_since(base):
                return f"since {main} ({base[:8]})", changed
            break
        try:
            return "in the last commit", self.changed_since("HEAD~1")
        except GitError:
            return "in the first commit", set(self.files())

    def last_full_run(self) -> str:
        """Return the commit on which `.ci/run full` passed last, an ancestor of this one."""
        record = self.root / RECORD
        words = record.read_text().split() if record.is_file() else []
        if not words:
            raise GitError(f"{RECORD} names no commit")
        try:
            self.git("merge-base", "--is-ancestor", words[0], "HEAD")
        except GitError as error:
            message = f"the commit in {RECORD}, {words[0][:12]}, is not in the history ({error})"
            raise GitError(message) from error
        return words[0]
