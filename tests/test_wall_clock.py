"""No test shows by the wall clock how long something takes: it would fail on a loaded machine.

What is to be quick is a benchmark. What must not hang is waited for with `tests/waiting.py`, whose
bounds are far above what a loaded machine needs.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = frozenset({"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"})
CLOCKS_IN_FULL = frozenset({"time.time", "loop.time"})
ARITHMETIC = frozenset({"abs", "float", "int", "max", "min", "round", "sum"})
LEAST_BOUND = 30
WAITS = frozenset({"asyncio.timeout", "asyncio.wait_for", "socket.create_connection"})
Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign


def is_time(node: ast.AST, names: set[str]) -> bool:
    """Whether it is computed from what a wall clock says, or from one of the names."""
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        if called.rpartition(".")[2] in CLOCKS or called in CLOCKS_IN_FULL:
            return True
        return called in ARITHMETIC and any(is_time(part, names) for part in node.args)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return ast.unparse(node) in names
    return any(is_time(part, names) for part in ast.iter_child_nodes(node))


def times(function: ast.AST) -> set[str]:
    """The names and attributes that hold a time, or a difference of times."""
    found: set[str] = set()
    given = [
        pair
        for node in ast.walk(function)
        if isinstance(node, Assignment) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for pair in _pairs(target, node.value)
    ]
    while more := {target for target, value in given if is_time(value, found)} - found:
        found |= more
    return found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Each name and what it is given: of `a, b = 1, monotonic()` both."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, its in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, its)
    else:
        yield ast.unparse(target), value


def assertions_on_time(tree: ast.AST) -> Iterator[int]:
    """The lines of assertions about a time that a clock of the machine has measured."""
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            asserts = [node for node in ast.walk(function) if isinstance(node, ast.Assert)]
            names = times(function) if asserts else set()
            yield from (node.lineno for node in asserts if is_time(node.test, names))


def short_bounds(tree: ast.AST) -> Iterator[int]:
    """The lines that give up waiting sooner than a loaded machine may need."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _bound(node) < LEAST_BOUND:
            yield node.lineno


def _bound(call: ast.Call) -> float:
    """How many seconds a call waits; many where it does not say, or says it by a name."""
    if ast.unparse(call.func) not in WAITS:
        return LEAST_BOUND
    given = [*call.args[-1:], *(one.value for one in call.keywords if one.arg == "timeout")][-1:]
    value = given[0].value if given and isinstance(given[0], ast.Constant) else None
    return float(value) if isinstance(value, (int, float)) else LEAST_BOUND


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.AST]:
    """Every module of tests in which a clock is read or something is waited for."""
    words = {*CLOCKS, *CLOCKS_IN_FULL, *WAITS}
    texts = {str(path.relative_to(TESTS)): path.read_text() for path in TESTS.rglob("*.py")}
    return {
        path: ast.parse(text) for path, text in texts.items() if any(word in text for word in words)
    }


def test_no_test_shows_by_the_wall_clock_how_long_something_takes(
    modules: dict[str, ast.AST],
) -> None:
    found = [
        f"{path}:{line}" for path, tree in modules.items() for line in assertions_on_time(tree)
    ]
    assert found == []


def test_no_test_gives_up_sooner_than_a_loaded_machine_may_need(
    modules: dict[str, ast.AST],
) -> None:
    found = [f"{path}:{line}" for path, tree in modules.items() for line in short_bounds(tree)]
    assert found == []


def test_an_assertion_on_the_time_is_seen(subtests: pytest.Subtests) -> None:
    for lines in [
        "assert time.monotonic() < deadline",
        "began = time.perf_counter(); work(); took = time.perf_counter() - began; assert took < 2",
        "last, began = 0, monotonic(); assert began < last",
        "self.began = loop.time(); assert now < self.began + 3",
        "took = max(took, time.time() - began); assert round(took) < 3",
    ]:
        with subtests.test(lines=lines):
            assert list(assertions_on_time(ast.parse(f"def test():\n    {lines}")))


@pytest.mark.parametrize(
    "lines",
    [
        "began = time.thread_time(); work(); assert time.thread_time() - began < 2",
        "began = time.monotonic(); found = asked(began); assert found",
        "assert service.time() == NOON",
    ],
)
def test_what_a_loaded_machine_does_not_change_is_left_alone(lines: str) -> None:
    assert not list(assertions_on_time(ast.parse(f"def test():\n    {lines}")))
