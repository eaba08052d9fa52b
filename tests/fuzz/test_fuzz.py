"""Every parser keeps its promises: on the inputs that are kept, and on some seconds of new ones.

`make fuzz` is the long form.
"""

import ast
import functools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import factbook
from factbook.outbound.outcomes import HostReply
from tests.fuzz import edits, guided, keeping, mutating, promises, requests
from tests.fuzz.parsers import NO_PARSERS
from tests.fuzz.target import CORPORA
from tests.fuzz.targets import TARGETS
from tests.no_retry_delay import no_pauses
from tests.steps import steps

__all__ = ["no_pauses"]

MOST_BYTES = 500_000
LONG = 30_000
# Three times as many as any parser runs; what is quadratic runs some million.
LINES_PER_KILOBYTE = 10_000
_NAMES = ("parse", "parsed", "decode", "decoded", "read", "load", "opened", "unpacked")
# First parameters of functions that read rows.
_DATABASES = frozenset({"database", "transaction", "tx"})
_SOURCE = Path(factbook.__file__).parent


@pytest.fixture(scope="module", autouse=True)
def service() -> Iterator[None]:
    """The service that requests are put to, which ends with these tests."""
    yield
    requests.close()


@pytest.mark.slow
def test_a_parser_keeps_its_promises_on_every_kept_input(subtests: pytest.Subtests) -> None:
    for name, target in TARGETS.items():
        with subtests.test(name):
            kept = target.kept()
            assert kept
            for data in kept:
                target.check(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_parser_keeps_its_promises_on_made_up_inputs(name: str) -> None:
    target = TARGETS[name]
    kept = target.kept()
    changed = st.builds(
        lambda data, number: mutating.mutated(data, random.Random(number), kept),
        st.sampled_from(kept),
        st.integers(0, 2**32),
    )

    @seed(1)
    @settings(
        max_examples=target.examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(changed | st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
    def keeps(data: bytes) -> None:
        target.check(data)
        tried.append(data)

    tried: list[bytes] = []
    keeps()
    # What is made up is neither the same over and over nor nothing but what is kept.
    assert len(set(tried) - set(kept)) > target.examples // 4


@pytest.mark.slow
def test_a_long_input_takes_no_more_steps_than_its_length_allows(subtests: pytest.Subtests) -> None:
    for name, target in TARGETS.items():
        with subtests.test(name):
            chance = random.Random(name)
            long = [mutating.stretched(data, chance) for data in chance.sample(target.kept(), 2)]
            for data in long:
                lines = steps(factbook, functools.partial(target.check, data))
                assert lines < LINES_PER_KILOBYTE * len(data) / 1024
            assert all(len(data) > LONG for data in long)


@pytest.mark.slow
def test_every_parser_has_a_target_or_a_reason_why_not() -> None:
    targeted = {parser for target in TARGETS.values() for parser in target.parsers}
    there = {name for name, of_rows in _functions().items() if _reads(name) and not of_rows}
    assert there - targeted - NO_PARSERS.keys() == set()
    assert NO_PARSERS.keys() & targeted == set()
    assert NO_PARSERS.keys() <= there


@pytest.mark.slow
def test_every_parser_that_a_target_names_is_there() -> None:
    named = {parser for target in TARGETS.values() for parser in target.parsers}
    assert named <= _functions().keys()


def test_what_is_kept_is_small_and_of_a_target() -> None:
    files = [file for file in CORPORA.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    assert {file.parent.name for file in files} == set(TARGETS)


def test_an_input_that_takes_too_long_is_told() -> None:
    def endless(_: bytes) -> None:
        sum(range(2_000_000))

    with pytest.raises(promises.TooSlowError):
        promises.run(endless, b"", 0.001)


def test_an_input_that_breaks_a_promise_is_left_in_a_file(tmp_path: Path) -> None:
    def broken(data: bytes) -> None:
        assert len(data) < 30

    target = TARGETS["cadence"]._replace(check=broken)
    with pytest.raises(AssertionError):
        guided.at_random(target, 10_000, tmp_path, seed=1)
    inputs = [file.read_bytes() for file in tmp_path.iterdir()]
    assert any(len(data) >= 30 for data in inputs)


def test_inputs_are_tried_at_random_where_there_is_no_atheris(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guided.at_random(TARGETS["cadence"], 200, tmp_path, seed=1)
    assert "stat::number_of_executed_units: 200" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_edits_change_the_answers_that_they_name() -> None:
    given = [edits.Edit("value", 0, "1 7"), edits.Edit("header", 0, "Link <x>")]
    reply = edits.edited(HostReply(200, {}, b'{"a":[1,2],"b":3}'), given)
    assert (reply.headers, reply.body) == ({"link": "<x>"}, b'{"a":9223372036854775808,"b":3}')


def test_an_input_that_reaches_other_lines_is_worth_keeping() -> None:
    target = TARGETS["cadence"]
    assert keeping.lines(target, b"* * * * *") - keeping.lines(target, b"x")


@functools.cache
def _functions() -> dict[str, bool]:
    """The public functions of factbook's modules, each with whether it reads rows.

    The service wrote the rows itself.
    """
    return {
        f"{'.'.join(file.relative_to(_SOURCE).with_suffix('').parts)}.{node.name}".replace(
            ".__init__.", "."
        ): any(one.arg in _DATABASES for one in node.args.args[:1])
        for file in _SOURCE.rglob("*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_"
    }


def _reads(function: str) -> bool:
    """Whether its name says that it reads something."""
    return function.rpartition(".")[2].split("_")[0] in _NAMES
