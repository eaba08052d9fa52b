"""The test files for a fault: those of its room, nearest to the changed module first."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.planted.faults import Fault

# All of their tests are system tests, which these runs leave out.
_SYSTEM: Final = frozenset({"system", "contracts", "browser"})

# Names that modules of many rooms have.
_COMMON: Final = frozenset({"api", "client", "list", "options", "page", "routes", "store"})

# Rooms without a test folder of the same name.
_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "__init__": ("cli",),
    "__main__": ("cli",),
    "app": ("test_start.py", "test_serve.py", "http"),
    "audit": ("auth/test_audit*.py", "api/test_audit*.py", "web/test_audit*.py"),
    "backend": ("test_start.py", "test_two_processes.py", "collection"),
    "clock": ("test_clock.py", "test_wall_clock.py"),
    "definitions": ("api/*owned*.py", "api/*defin*.py", "checks/*version*.py", "datasources"),
    "errors": ("api/test_errors.py", "http"),
    "invisible": ("test_invisible.py",),
    "process": ("test_serve.py", "test_shutdown.py"),
    "safe_yaml": ("test_safe_yaml.py",),
    "schemas": ("api/test_schemas.py", "client"),
    "settings": ("test_settings.py",),
    "shutdown": ("test_shutdown.py", "test_serve.py"),
    "telemetry": ("test_logs.py", "observability"),
    "worker": ("collection", "test_sweeps.py"),
}


class RoomFiles(NamedTuple):
    """Test files as paths below the root: those nearest to a fault, then the rest of the room."""

    nearest: list[str]
    rest: list[str]

    @property
    def all(self) -> list[str]:
        """All of them, nearest first."""
        return [*self.nearest, *self.rest]


def files_of(root: Path, fault: Fault, caught_by: str = "") -> RoomFiles:
    """The test files of the fault's room.

    Nearest are the files that are named after the module or import it, the folder that mirrors the
    module's, and the file of the test that caught the fault before. The others are in the order of
    how often they name the module.
    """
    module = Path(fault.path).relative_to("src/factbook").with_suffix("")
    room = _room(root, module.parts[0])
    every = _plain_files(root)
    imported = _Import(module)
    caught_file = root / caught_by.partition("::")[0]
    mirror = root / "tests" / module.parent
    first, second, third = list[Path](), list[Path](), list[Path]()
    for path in every:
        if path == caught_file:
            first.insert(0, path)
        elif _is_named_after(path, module, wholly=path not in room):
            first.append(path)
        elif imported.is_in(_text(path)):
            second.append(path)
        elif len(module.parts) > 2 and mirror in path.parents:
            third.append(path)
    nearest = [*first, *second, *third]
    name = re.compile(_name(module).replace("_", "[-_ ]?"), re.IGNORECASE)
    rest = [path for path in every if path in room and path not in nearest]
    rest.sort(key=lambda path: -len(name.findall(_text(path))))
    return RoomFiles(_relative(root, nearest), _relative(root, rest))


def _room(root: Path, name: str) -> frozenset[Path]:
    """The test files of a room."""
    tests = root / "tests"
    names = (name,) if (tests / name).is_dir() else _ELSEWHERE.get(name, ())
    places = [place for each in names for place in tests.glob(each)]
    files = [
        path for place in places for path in ([place], place.rglob("test_*.py"))[place.is_dir()]
    ]
    return frozenset(files)


@cache
def _plain_files(root: Path) -> list[Path]:
    tests = root / "tests"
    folders = [path for path in tests.iterdir() if path.is_dir() and path.name not in _SYSTEM]
    return sorted([*tests.glob("test_*.py"), *(f for d in folders for f in d.rglob("test_*.py"))])


def _is_named_after(path: Path, module: Path, *, wholly: bool) -> bool:
    """True if a word of the module's name, in singular or plural, is in that of the file.

    `wholly`: all of its words are, and it is not a name that modules of many rooms have.
    """
    name = _name(module)
    words = {word.rstrip("s") for word in path.stem.split("_")}
    matches = (word.rstrip("s") in words for word in name.split("_"))
    return name not in _COMMON and all(matches) if wholly else any(matches)


def _name(module: Path) -> str:
    """The name of the module, or of the package that it is."""
    return module.parent.name if module.name == "__init__" else module.name


class _Import:
    """An import of a module, to be found in test files."""

    def __init__(self, module: Path) -> None:
        *parents, own = ("factbook", *module.parts)
        if own == "__init__":
            *parents, own = parents
        parent = ".".join(parents)
        self._heads = (f"from {parent} import ", f"from {parent}.{own} ", f"import {parent}.{own}")
        self._pattern = re.compile(
            rf"\bfrom {re.escape(parent)} import (?:\([^)]*|[^(\n]*)\b{own}\b"
        )

    def is_in(self, text: str) -> bool:
        """True if the text imports the module."""
        beside, *inside = (head in text for head in self._heads)
        return any(inside) or (beside and self._pattern.search(text) is not None)


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8")


def _relative(root: Path, paths: Iterable[Path]) -> list[str]:
    return [str(path.relative_to(root)) for path in paths]
