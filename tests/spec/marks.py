"""Which tests name which requirement, read from the source of the tests without importing it."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Mark:
    """One id in one `pytest.mark.spec(...)`."""

    requirement_id: str | None
    """None when the argument is not a literal string, which nothing can check."""
    file: str
    line: int
    scope: str
    """The marked function or class, dotted; empty for a mark of the whole module."""

    @property
    def place(self) -> str:
        """Where an editor finds it: `file:line`."""
        return f"{self.file}:{self.line}"

    @property
    def test(self) -> str:
        """What shows the requirement: `file::function`, or the file for a whole module."""
        return f"{self.file}::{self.scope}" if self.scope else self.file

    @property
    def is_on_a_test(self) -> bool:
        """Whether pytest will apply it: marks of fixtures and helpers have no effect."""
        file_name = self.file.rsplit("/", 1)[-1]
        innermost = self.scope.rsplit(".", 1)[-1].lower()
        return file_name.startswith("test_") and (not innermost or innermost.startswith("test"))


@cache
def marks_in(root: Path = TESTS) -> Sequence[Mark]:
    """Every mark under `root`, by file and line; files are named from the folder above it."""
    return [
        mark
        for path in sorted(root.rglob("*.py"))
        if "node_modules" not in path.relative_to(root).parts
        for mark in marks_of_source(
            path.read_text(encoding="utf-8"), path.relative_to(root.parent).as_posix()
        )
    ]


def marks_of_source(source: str, file: str) -> list[Mark]:
    """Every mark in the text of one module, by line."""
    if ".spec" not in re.sub(r"\s", "", source):  # to parse all modules takes three seconds
        return []
    return sorted(_walk(ast.parse(source, file).body, file, ""), key=lambda mark: mark.line)


def _walk(nodes: Iterable[ast.AST], file: str, scope: str) -> Iterator[Mark]:
    for node in nodes:
        inner = scope
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{scope}.{node.name}" if scope else node.name
        if isinstance(node, ast.Call) and _is_spec(node.func):
            yield from _ids(node, file, inner)
        yield from _walk(ast.iter_child_nodes(node), file, inner)


def _is_spec(function: ast.expr) -> bool:
    """Whether this is `pytest.mark.spec`, or `mark.spec` after `from pytest import mark`."""
    return ast.unparse(function) in {"pytest.mark.spec", "mark.spec"}


def _ids(call: ast.Call, file: str, scope: str) -> Iterator[Mark]:
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        value = argument.value if isinstance(argument, ast.Constant) else None
        named = value if isinstance(value, str) else None
        yield Mark(named, file, argument.lineno, scope)
