"""Checks of two and three comparisons, evaluated for many entities, beside json-rules-engine.

Both get the same rules and facts in turns, each in one process; the engine's is Node.js. All facts
are known, since the engine gives no result where one is missing.
"""

import json
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.findings import Findings
from bench.run import Run
from factbook.checks.rules.check_definition import parse_check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.rule_evaluation import CompiledCheck
from factbook.checks.state import PASS
from factbook.facts.freshness import Latest

_HERE = Path(__file__).parent
_NODE = _HERE.parent / "tests" / "contracts" / "node_modules" / ".bin" / "node"
_NOW = 1_764_000_000_000
# Evaluations of ours for one of the engine, which takes longer.
_TIMES = 10
_LEAVES: tuple[tuple[str, str, Any], ...] = (
    ("branchProtected", "equal", True),
    ("approvals", "greaterThanInclusive", 1),
    ("openIssues", "lessThan", 50),
)

Facts = dict[str, Any]


def check_rules(run: Run) -> Findings:
    """Microseconds of CPU of one evaluation, and how many times less that is than the engine's."""
    findings = Findings()
    facts = _facts(run.options.entities)
    entities = [
        CheckedEntity(f"component:default/{i}", {}, {"code": Latest(one, {}, "1.0.0", _NOW)})
        for i, one in enumerate(facts)
    ]
    with _engine() as engine:
        for number in run.rounds:
            for name, count in (("two", 2), ("three", 3)):
                passed, ours = _evaluated(count, entities)
                theirs = _asked(engine, count, facts)
                assert passed == theirs["passed"]
                context = {
                    "a second": 1e6 / ours,
                    "engine": theirs["once"],
                    "engine made each time": theirs["each"],
                }
                findings.add(name, ours, **context)
                findings.add(f"{name}-engine", ours / theirs["once"])
                run.say(f"round {number + 1}: {name}: {ours:.2f} µs, {theirs['once']:.1f} µs")
    return findings


def _facts(count: int) -> list[Facts]:
    chance = random.Random(1)
    return [
        {
            "branchProtected": chance.random() < 0.7,
            "approvals": chance.randrange(3),
            "openIssues": chance.randrange(100),
        }
        for _ in range(count)
    ]


def _evaluated(leaves: int, entities: list[CheckedEntity]) -> tuple[int, float]:
    """How many passed, and the microseconds of one evaluation."""
    rule = [
        {"source": "code", "fact": fact, "operator": operator, "value": value}
        for fact, operator, value in _LEAVES[:leaves]
    ]
    evaluate = CompiledCheck(
        parse_check({"id": "one", "title": "One", "rule": {"all": rule}}), 1
    ).evaluate
    began = time.process_time()
    for _ in range(_TIMES):
        passed = 0
        for entity in entities:
            passed += evaluate(entity, _NOW).state == PASS
    seconds = time.process_time() - began
    return passed, 1e6 * seconds / (_TIMES * len(entities))


def _asked(engine: "subprocess.Popen[str]", leaves: int, facts: list[Facts]) -> dict[str, float]:
    """How many passed, and the microseconds of one evaluation by the engine."""
    rule = [
        {"fact": fact, "operator": operator, "value": value}
        for fact, operator, value in _LEAVES[:leaves]
    ]
    assert engine.stdin is not None
    assert engine.stdout is not None
    engine.stdin.write(json.dumps({"conditions": {"all": rule}, "facts": facts}) + "\n")
    engine.stdin.flush()
    found: dict[str, float] = json.loads(engine.stdout.readline())
    for name in ("once", "each"):
        found[name] *= 1e6 / len(facts)
    return found


@contextmanager
def _engine() -> Iterator["subprocess.Popen[str]"]:
    """The engine in a process that answers one question after another."""
    if not _NODE.exists():
        raise RuntimeError("tests/contracts has no node_modules: `make contracts` installs them")
    with subprocess.Popen(
        [_NODE, _HERE / "rules_engine.mjs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
