"""Faults drawn at random: an operator or a constant of the product becomes another one.

A comparison, `and`, `or`, `not`, `+`, `-`, an integer, `True` or `False` changes. All places are
equally likely, except those that can't change behavior, or only change speed: annotations,
`__all__`, log calls, f-strings, assertions, options of classes and decorators, and sizes of
portions and caches.
"""

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.planted.faults import ROOT, Fault

_SOURCE: Final = "src/factbook"

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[str, str]]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_BOOLEANS: Final[dict[type[ast.boolop], tuple[str, str]]] = {
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
_SUMS: Final[dict[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
}
# Constants with such a name bound a piece of work, not its result.
_SIZES: Final = ("_AT_ONCE", "_PORTION", "_SCANNED", "_DELETED")
# Arguments that change no result of correct code.
_INERT: Final = frozenset({"maxsize", "strict", "stacklevel"})


class _Edit(NamedTuple):
    """A replacement on one line of a file, by its byte columns there."""

    line: int
    start: int
    end: int
    text: str


def draw(count: int, seed: int) -> list[Fault]:
    """Faults at places drawn with this seed; the same source and seed give the same faults."""
    places = [(path, edit) for path in _modules() for edit in _edits(path)]
    drawn = random.Random(seed).sample(places, count)
    return [_fault(f"drawn-{seed}-{n:02}", *place) for n, place in enumerate(drawn, 1)]


def _modules() -> list[Path]:
    return sorted((ROOT / _SOURCE).rglob("*.py"))


def _edits(path: Path) -> Iterator[_Edit]:
    """Every edit of a module that is a candidate, in the order of the source."""
    text = path.read_bytes()
    lines = text.splitlines()
    for node in _relevant(ast.parse(text)):
        edit = _edit(node, lines)
        if edit is not None:
            yield edit


def _relevant(node: ast.AST) -> Iterator[ast.AST]:
    """The node and those below it, without those that are left out."""
    yield node
    for name, value in ast.iter_fields(node):
        if _is_left_out(node, name):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_inert(child):
                yield from _relevant(child)


def _is_left_out(node: ast.AST, field: str) -> bool:
    if field in {"annotation", "returns", "decorator_list"}:
        return True
    if isinstance(node, ast.ClassDef):
        return field in {"keywords", "bases"}
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _is_inert(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Assert():
            return True
        case ast.keyword(arg=name):
            return name in _INERT
        case ast.Call(func=ast.Attribute(value=ast.Name("log"))):
            return True
        case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
            return name == "__all__" or name.endswith(_SIZES)
    return False


def _edit(node: ast.AST, lines: list[bytes]) -> _Edit | None:
    """The edit of a node; None if there is none."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand) if node.lineno == operand.lineno:
            return _Edit(node.lineno, node.col_offset, node.col_offset + len("not "), "")
        case ast.Constant(value=bool() | int() as value):
            text = str(not value) if isinstance(value, bool) else str(value + 1)
            return _Edit(node.lineno, node.col_offset, node.end_col_offset or 0, text)
    operation = _operation(node)
    return None if operation is None else _between(*operation, lines)


def _operation(node: ast.AST) -> tuple[ast.expr, ast.expr, tuple[str, str]] | None:
    """The first two operands of an operation, and its operator before and after."""
    match node:
        case ast.Compare(left=left, ops=[comparison, *_], comparators=[right, *_]):
            return left, right, _COMPARISONS[type(comparison)]
        case ast.BoolOp(op=boolean, values=[left, right, *_]):
            return left, right, _BOOLEANS[type(boolean)]
        case ast.BinOp(left=left, op=(ast.Add() | ast.Sub()) as sign, right=right):
            has_text = any(
                isinstance(each, ast.JoinedStr) or _is_text(each) for each in (left, right)
            )
            return None if has_text else (left, right, _SUMS[type(sign)])
        case ast.AugAssign(target=left, op=(ast.Add() | ast.Sub()) as sign, value=right):
            old, new = _SUMS[type(sign)]
            return left, right, (f"{old}=", f"{new}=")
    return None


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _between(
    left: ast.expr, right: ast.expr, change: tuple[str, str], lines: list[bytes]
) -> _Edit | None:
    """The edit of the operator between two operands."""
    old, new = change
    line, start = left.end_lineno or 0, left.end_col_offset or 0
    while line <= right.lineno:
        end = right.col_offset if line == right.lineno else len(lines[line - 1])
        gap = lines[line - 1][start:end]
        if gap.strip(b" ()\\").startswith(old.encode()):
            start += gap.index(old.encode())
            return _Edit(line, start, start + len(old), new)
        line, start = line + 1, 0
    return None


def _fault(fault_id: str, path: Path, edit: _Edit) -> Fault:
    """The fault of an edit, whose snippet grows by whole lines until it occurs once."""
    text = path.read_text("utf-8")
    lines = text.splitlines(keepends=True)
    line = lines[edit.line - 1].encode()
    changed = (line[: edit.start] + edit.text.encode() + line[edit.end :]).decode()
    first = last = edit.line - 1
    while text.count("".join(lines[first : last + 1])) > 1:
        first, last = max(0, first - 1), last + 1
    before, after = lines[first : edit.line - 1], lines[edit.line : last + 1]
    return Fault(
        fault_id,
        "drawn",
        str(path.relative_to(ROOT)),
        "".join(lines[first : last + 1]),
        "".join([*before, changed, *after]),
    )
