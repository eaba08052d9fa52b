"""Which system tests a changed path needs."""

import re
from collections.abc import Iterable
from typing import Final

from tests.lanes.imports import Importers
from tests.lanes.repository import Repository
from tests.lanes.tables import EVERYTHING, SYSTEM

_MARKER: Final = re.compile(rb"\bmark\.system\b")
_CODE: Final = ("tests/", "bench/", "scripts/")


def row(path: str, table: Iterable[str] = SYSTEM) -> str | None:
    """Return the key of a path in a table: the path itself, or the longest folder it is in."""
    keys = [key for key in table if path == key or (key.endswith("/") and path.startswith(key))]
    return max(keys, key=len, default=None)


def _is_shared(path: str) -> bool:
    """Return whether all tests of a folder use a file."""
    return path.endswith("/conftest.py")


class SystemTests:
    """The files with system tests, and how paths lead to them."""

    def __init__(self, repository: Repository) -> None:
        files = repository.files()
        code = [path for path in files if path.endswith(".py") and path.startswith(_CODE)]
        self.files = [
            path
            for path in code
            if path.rpartition("/")[2].startswith("test_")
            and _MARKER.search((repository.root / path).read_bytes())
        ]
        self._importers = Importers(repository.root, [*self.files, *filter(_is_shared, code)], code)

    def matching(self, prefixes: Iterable[str]) -> list[str]:
        """Return the files whose paths begin with any of these."""
        return [path for path in self.files if path.startswith(tuple(prefixes))]

    def of(self, path: str) -> list[str] | None:
        """Return the files that a changed path needs, or None if nothing says which."""
        key = row(path)
        if key is None or SYSTEM[key] == EVERYTHING:
            return None if key is None else self.files
        if key != path and path.startswith(_CODE) and path.endswith(".py"):
            reached = self._importers.of(path)
            name = path.rpartition("/")[2]
            if reached or name.startswith("test_") or name == "conftest.py":
                reached.add(path)
                shared = {each.removesuffix("conftest.py") for each in reached if _is_shared(each)}
                reached.update(self.matching(shared))
                return [each for each in self.files if each in reached]
        return self.matching(SYSTEM[key])

    def decision(self, path: str) -> tuple[str, list[str]]:
        """Return in a few words what a changed path needs, and the files."""
        chosen = self.of(path)
        if chosen is None:
            return "not in the table: everything", self.files
        if chosen == self.files:
            return "everything", chosen
        if len(chosen) <= 1:
            return chosen[0] if chosen else "nothing", chosen
        return f"{len(chosen)} files", chosen
