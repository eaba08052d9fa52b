"""No test depends on the speed of the machine or on random ids: it would fail now and then.

Measure speed in a benchmark, or count steps with `tests/steps.py`. Wait with `tests/waiting.py`,
whose bounds are far above what a loaded machine needs.
"""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import factbook
from factbook.clock import SECOND
from factbook.collection import collector, run_start
from factbook.scheduling import lease
from factbook.storage.partitions import PAUSE_SECONDS
from factbook.web import routes
from factbook.webhooks import sender
from tests import tree, waiting

TESTS = Path(__file__).parent
# Without packages of npm, which may hold files of older Pythons.
FILES = sorted(
    path
    for path in tree.files(TESTS.parent)
    if path.suffix == ".py" and TESTS in path.parents and path.is_file()
)
SOURCE = Path(factbook.__file__).parent
CLOCKS = frozenset({"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"})
CLOCKS_IN_FULL = frozenset({"time.time", "loop.time"})
PROCESSOR_CLOCKS = frozenset(
    {"process_time", "process_time_ns", "thread_time", "thread_time_ns", "ru_utime", "ru_stime"}
)
# Fuzzing looks for slow inputs; tests do not.
READS_PROCESSOR_CLOCKS = frozenset({"fuzz/promises.py"})
ARITHMETIC = frozenset({"abs", "float", "int", "max", "min", "round", "sum"})
LEAST_BOUND = 30
# The place of the bound among the arguments, and its name.
WAITS = {
    "asyncio.timeout": (0, "delay"),
    "asyncio.wait_for": (1, "timeout"),
    "connection.settimeout": (0, "value"),
    "socket.create_connection": (1, "timeout"),
    "until": (1, "seconds"),
    "soon": (1, "seconds"),
}
# Methods that wait for threads, processes and futures.
METHODS = frozenset({"result", "wait"})
# Without a timeout they wait for five seconds.
CLIENTS = frozenset(
    f"httpx2.{name}"
    for name in ("AsyncClient", "Client", "delete", "get", "post", "put", "request")
)
CLIENT_SECONDS = 5
NAMED_BOUNDS = frozenset({"timeout", "within"})
IN_MILLISECONDS = re.compile(r"(.+\.)?(set_options|set_default_\w*timeout|to_\w+|wait_for_\w+)")
# Bounds that tests reach on purpose: nothing happens for that long.
REACHED = frozenset(
    {
        ("test_serve.py", "connection.settimeout(0.5)"),
        ("system/load.py", "self._stop.wait(_BETWEEN_SECONDS)"),
        ("system/load.py", "self._stop.wait(_PAUSE_SECONDS)"),
        ("system/traffic.py", "self._stop.wait(0.1)"),
    }
)
# Modules that tests import, but whose waits only commands reach.
COMMANDS = frozenset({"supply/advisories.py"})
# The most waits of a test in a row. A wait has a better message than the runner's limit.
CHAIN = 5
# Only modules that match are parsed.
WORDS = re.compile(
    r"timeout[(=]|within=|(until|soon|wait_for|create_connection)\(|\.(wait|result)\([^)]|"
    r"httpx2\.\w+\(|os\.times|" + "|".join(CLOCKS | CLOCKS_IN_FULL | PROCESSOR_CLOCKS)
)
IMPORTS = re.compile(r"^from tests\.([\w.]+) import", re.MULTILINE)
# Orders that end with a growing id: rows of one instant keep their order.
GROWING = frozenset(
    {
        ("audit/trail.py", "at, id"),
        ("audit/trail.py", "at DESC, id DESC"),
        ("audit/trail.py", "at, id"),
        ("catalog/store/revisions.py", "removed_at, id"),
        ("checks/digests.py", "at, id"),
        ("checks/digests.py", "c.at, c.id"),
        ("checks/digests.py", "at DESC, id DESC"),
        ("checks/results/state_store.py", "at DESC, id DESC"),
        ("webhooks/sender.py", "next_at, event_id"),
        ("webhooks/store.py", "first_at DESC, event_id"),
    }
)
# Orders that end with a random id. The clock of a test stands still, so a test that reads such a
# list in order advances it before it makes the next row.
DRAWN = frozenset(
    {
        ("auth/invitations.py", "made_at DESC, hash"),
        ("auth/oauth/consents.py", "created_at DESC, id"),
        ("auth/oauth/clients.py", "created_at, id"),
        ("auth/sessions.py", "used_at DESC, hash"),
        ("auth/tokens.py", "created_at DESC, id"),
        ("auth/tokens.py", "created_at DESC, id DESC"),
        ("checks/definitions/exemption_store.py", "requested_at DESC, id DESC"),
        ("scim/store.py", "created_at, id"),
        ("webhooks/digests.py", "next_at, id"),
        ("webhooks/digests.py", "owner, id"),
        ("webhooks/store.py", "w.created_at, w.id"),
    }
)
ORDER = re.compile(r"ORDER BY ((?:(?!LIMIT\b|OFFSET\b)[^)\";])+)")
LAST_BY_ID = re.compile(r".+, (\w+\.)?(id|hash|event_id)( DESC)?")
Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign
Constants = Mapping[str, float]


class Bound(NamedTuple):
    """A call that waits, and for how many seconds at most."""

    call: str
    seconds: float


class Module(NamedTuple):
    """What a module of tests does by clocks."""

    on_wall_clock: list[int]
    on_processor: list[int]
    waits: list[Bound]
    limits: list[float]
    imports: set[str]


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


def processor_times(tree: ast.AST) -> Iterator[int]:
    """The lines that read how long the processor has worked."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in PROCESSOR_CLOCKS:
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="os"), attr="times"):
                yield node.lineno


def constants(tree: ast.Module) -> dict[str, float]:
    """The numbers that a module names, with those of `tests/waiting.py`."""
    names = {name: value for name, value in vars(waiting).items() if isinstance(value, float)}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        numbers = _numbers(value, names)
        if numbers:
            names[name] = min(numbers)
    return names


def bounds(tree: ast.Module) -> Iterator[Bound]:
    """The waits whose bounds are constants."""
    names = constants(tree)
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            scale = 1000 if IN_MILLISECONDS.fullmatch(_dotted(call.func)) else 1
            for bound in _bounds(call):
                for number in _numbers(bound, names):
                    yield Bound(ast.unparse(call), number / scale)


def _bounds(call: ast.Call) -> Iterator[ast.expr]:
    called = _dotted(call.func)
    place, name = WAITS.get(called, (None, "timeout"))
    if place is None and called.rpartition(".")[2] in METHODS:
        place = 0
    if place is not None and len(call.args) > place:
        yield call.args[place]
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    yield from (value for key, value in named.items() if key in {*NAMED_BOUNDS, name})
    if called in CLIENTS and not named.keys() & {"timeout", "transport"}:
        yield ast.Constant(CLIENT_SECONDS)


def _dotted(node: ast.AST) -> str:
    """A name with the one before it: `asyncio.timeout`."""
    match node:
        case ast.Attribute(value=ast.Name(id=of), attr=name):
            return f"{of}.{name}"
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _numbers(node: ast.expr, names: Constants) -> list[float]:
    """The values that an expression of constants may have; none of anything else."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return [float(value)]
        case ast.Name(id=name) if name in names:
            return [names[name]]
        case ast.IfExp(body=one, orelse=other):
            return _numbers(one, names) + _numbers(other, names)
        case ast.BinOp(left=left, right=right, op=ast.Mult()):
            return [a * b for a in _numbers(left, names) for b in _numbers(right, names)]
        case ast.BinOp(left=left, right=right, op=ast.Div()):
            return [a / b for a in _numbers(left, names) for b in _numbers(right, names)]
    return []


def limits(tree: ast.Module) -> Iterator[float]:
    """The limits of the runner that marks in a module set."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="mark"), attr="timeout")):
                yield min(_numbers(node.args[0], {}))


def read(path: Path) -> Module:
    """Read a module, of which only those that name a clock or a wait are parsed."""
    text = path.read_text()
    tree = ast.parse(text if WORDS.search(text) else "")
    return Module(
        list(assertions_on_time(tree)),
        list(processor_times(tree)),
        list(bounds(tree)),
        list(limits(tree)),
        {name.replace(".", "/") + ".py" for name in IMPORTS.findall(text)},
    )


def helpers(path: str, modules: Mapping[str, Module]) -> set[str]:
    """The paths of the modules of tests that a module imports, and those import, with its own."""
    reached, new = set[str](), {path}
    while new:
        reached |= new
        paths = {one for path in new for one in modules[path].imports}
        new = (paths & modules.keys()) - reached - COMMANDS
    return reached


def connections_left_open(tree: ast.AST) -> Iterator[int]:
    """Lines of `with sqlite3.connect(…)`, which ends a transaction and closes nothing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            for item in node.items:
                if ast.unparse(item.context_expr).startswith("sqlite3.connect("):
                    yield node.lineno


def orders_by_id(text: str) -> Iterator[str]:
    """The orders of the statements in a module that end with an id."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            orders = (" ".join(order.split()) for order in ORDER.findall(node.value))
            yield from filter(LAST_BY_ID.fullmatch, orders)


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    """Every module of tests but this."""
    return {str(path.relative_to(TESTS)): read(path) for path in FILES if path != Path(__file__)}


@pytest.mark.slow
def test_no_test_shows_by_the_wall_clock_how_long_something_takes(
    modules: dict[str, Module],
) -> None:
    assert {path: one.on_wall_clock for path, one in modules.items() if one.on_wall_clock} == {}


@pytest.mark.slow
def test_no_test_reads_how_long_the_processor_has_worked(modules: dict[str, Module]) -> None:
    """Its time depends on its neighbors and caches; work can be counted."""
    found = {path: one.on_processor for path, one in modules.items() if one.on_processor}
    assert found.keys() == READS_PROCESSOR_CLOCKS, found


@pytest.mark.slow
def test_no_test_gives_up_sooner_than_a_loaded_machine_may_need(
    modules: dict[str, Module],
) -> None:
    short = {
        (path, wait.call)
        for path, one in modules.items()
        for wait in one.waits
        if 0 < wait.seconds < LEAST_BOUND
    }
    assert short == REACHED


def test_waits_are_ten_times_as_long_as_what_they_wait_for() -> None:
    """A loop that is late for a round, or for a few, fails no test."""
    script = (Path(routes.__file__).parent / "static" / "factbook.js").read_text()
    [longest] = re.findall(r"const LONGEST = ([\d_]+);", script)
    periods = [
        (waiting.LONG, lease.LEADERSHIP_RENEWED_EVERY / SECOND),
        (waiting.LONG, run_start.ARRIVALS_PAUSE / SECOND),
        (waiting.LONG, collector.POLL_SECONDS),
        (waiting.LONG, PAUSE_SECONDS),
        (waiting.TAKEN_OVER, lease.LEADERSHIP_HELD / SECOND),
        (waiting.TAKEN_OVER, sender.CLAIM_DURATION / SECOND),
    ]
    assert [(bound, period) for bound, period in periods if bound < 10 * period] == []
    # A page rests for forty times as long as it took to come, and a minute at most.
    assert int(longest) / 1000 < waiting.LONG


@pytest.mark.slow
def test_the_runner_waits_longer_than_a_chain_of_waits(modules: dict[str, Module]) -> None:
    """So that a wait fails with its own message."""
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())
    usual = project["tool"]["pytest"]["ini_options"]["timeout"]
    short = []
    for path, one in modules.items():
        if Path(path).name.startswith("test_"):
            longest = max(
                (wait.seconds for each in helpers(path, modules) for wait in modules[each].waits),
                default=0,
            )
            if (limit := min(one.limits, default=usual)) < CHAIN * longest:
                short.append(f"{path}: ends after {limit:.0f} s, and waits for {longest:.0f} s")
    assert short == []


def test_every_sqlite_connection_of_a_test_is_closed() -> None:
    """Python 3.13 warns when it collects an open one, in whichever test runs by then."""
    texts = {path: path.read_text() for path in FILES}
    found = {
        str(path.relative_to(TESTS)): lines
        for path, text in texts.items()
        if "sqlite3" in text and (lines := list(connections_left_open(ast.parse(text))))
    }
    assert found == {}


def test_a_connection_that_is_left_open_is_seen() -> None:
    assert list(connections_left_open(ast.parse("with sqlite3.connect(path) as it: pass"))) == [1]
    assert not list(connections_left_open(ast.parse("with closing(sqlite3.connect(path)): pass")))


@pytest.mark.slow
def test_no_order_by_an_id_is_unknown() -> None:
    """Rows of one instant come in another order in each run where their ids are drawn."""
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    found = {
        (str(path.relative_to(SOURCE)), order)
        for path, text in texts.items()
        if "ORDER BY" in text
        for order in orders_by_id(text)
    }
    assert found == GROWING | DRAWN


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


def test_what_a_loaded_machine_does_not_change_is_left_alone(subtests: pytest.Subtests) -> None:
    for lines in [
        "began = time.monotonic(); found = asked(began); assert found",
        "assert service.time() == NOON",
    ]:
        with subtests.test(lines=lines):
            assert not list(assertions_on_time(ast.parse(f"def test():\n    {lines}")))


def test_a_wait_that_is_short_is_seen(subtests: pytest.Subtests) -> None:
    for line, seconds in [
        ("asyncio.timeout(5)", 5),
        ("await asyncio.wait_for(done, 2)", 2),
        ("SHORT = 10\nuntil(holds, SHORT)", 10),
        ("until(holds, LONG / 10)", waiting.LONG / 10),
        ("subprocess.run(command, timeout=2 * 3)", 6),
        ("server.stop(within=7 if is_quick else 60)", 7),
        ("socket.create_connection(address, 1)", 1),
        ("assert event.wait(8)", 8),
        ("httpx2.get(url)", CLIENT_SECONDS),
        ("expect.set_options(timeout=4_000)", 4),
    ]:
        with subtests.test(line=line):
            assert min(wait.seconds for wait in bounds(ast.parse(line))) == seconds


def test_a_clock_of_the_processor_is_seen(subtests: pytest.Subtests) -> None:
    for line in [
        "time.process_time()",
        "from time import thread_time\nthread_time()",
        "os.times()",
    ]:
        with subtests.test(line=line):
            assert list(processor_times(ast.parse(line)))
