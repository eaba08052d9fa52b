"""Which Python files of the tests import which others, read from their syntax."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path


def module(path: str) -> str:
    """Return the name by which others import a file."""
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(root: Path, path: str) -> set[str]:
    """Return the names that a file imports: modules, and what it takes from them."""
    package = module(path).split(".")
    if not path.endswith("/__init__.py"):
        package.pop()
    names: set[str] = set()
    for node in _statements(ast.parse((root / path).read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            names.add(source)
            names.update(f"{source}.{alias.name}" for alias in node.names)
    return names


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements in a node, at any depth: only statements import."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from _statements(child)


class Importers:
    """The importers of each file, among some files and everything that they import."""

    def __init__(self, root: Path, some: Iterable[str], files: Iterable[str]) -> None:
        paths = {module(path): path for path in files if path.endswith(".py")}
        self._direct: dict[str, set[str]] = defaultdict(set)
        unread = [*some]
        read = {*unread}
        while unread:
            path = unread.pop()
            for other in {paths[name] for name in imported(root, path) if name in paths}:
                self._direct[other].add(path)
                if other not in read:
                    read.add(other)
                    unread.append(other)

    def of(self, path: str) -> set[str]:
        """Return the files that import one, those that import these, and so on."""
        reached: set[str] = set()
        new = [path]
        while new:
            importers = self._direct[new.pop()] - reached
            reached |= importers
            new += importers
        return reached


def direct_importers(root: Path, names: set[str], files: Iterable[str]) -> Iterator[str]:
    """Yield the files that import a module of these names; only those that mention one are read."""
    last = {name.rpartition(".")[2].encode() for name in names}
    for path in files:
        text = (root / path).read_bytes()
        if any(word in text for word in last) and names & imported(root, path):
            yield path
