"""Checks that are taken over from json-rules-engine have its results where every fact is known.

Where a fact is missing the engine throws, or guesses if it may. Ours is unknown then, or has the
result that the engine gives for every value that the fact could have.
"""

import json
import random
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import pytest

from factbook.checks.state import UNKNOWN, name_state
from factbook.checks.takeover import Remarks, Translation
from tests.checks.making import check, entity, evaluated
from tests.checks.public_rules import RULES, PublicRule
from tests.contracts.node import HERE, NODE

pytestmark = pytest.mark.system

Facts = Mapping[str, Any]

# Facts of random rules by type, with values that they can have.
VALUES: Mapping[str, Sequence[Any]] = {
    "text": ("production", "Production", "experimental", "a.*b", ""),
    "number": (-1, 0, 1, 2.5, 50),
    "flag": (True, False),
    "list": ([], ["a"], ["b", "a"], ["c", "d"]),
}
ONE_OF = ("in", "notIn", "someValue:equal", "everyValue:notEqual", "swap:contains")
OF_NUMBERS = ("lessThan", "lessThanInclusive", "greaterThan", "greaterThanInclusive")
HOLDING_ONE = ("contains", "doesNotContain", "someFact:equal", "everyFact:notEqual")
HOLDING = ("someFact:in", "everyFact:notIn", "everyValue:contains", "someValue:contains")


class RulesEngine:
    """The npm package in a process that answers one question after another."""

    def __init__(self) -> None:
        assert NODE.exists(), "tests/contracts has no node_modules: make contracts installs them"
        self.process = subprocess.Popen(
            [NODE, HERE / "rules-engine.mjs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, rule: PublicRule, facts: Sequence[Facts], *, guess: bool = False) -> list[str]:
        """What it says of each of the facts: pass, fail or throws."""
        question = {
            "conditions": rule.conditions,
            "shared": rule.shared,
            "facts": facts,
            "guess": guess,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        found: list[str] = json.loads(self.process.stdout.readline())
        return found


@pytest.fixture(scope="module")
def engine() -> Iterator[RulesEngine]:
    """The npm package, asked by every test of this module."""
    asked = RulesEngine()
    yield asked
    asked.process.communicate(timeout=30)


def ours(rule: PublicRule, facts: Sequence[Facts]) -> list[str]:
    """What a check that is taken over says of each of the facts."""
    remarks = Remarks()
    translation = Translation(lambda fact: {"source": "s", "fact": fact}, remarks, rule.shared)
    one = check(translation.of(rule.conditions, "conditions"))
    assert not remarks.found
    return [name_state(evaluated(one, entity({"s": known})).state) for known in facts]


def every_value(facts: Mapping[str, Sequence[Any]]) -> list[Facts]:
    """Every combination of values of all facts."""
    return [dict(zip(facts, values, strict=True)) for values in product(*facts.values())]


def lacking(rule: PublicRule) -> Iterator[tuple[Facts, list[Facts]]]:
    """Facts of which some are missing, with each way in which these could be known."""
    names = list(rule.facts)
    for missing in {*combinations(names, 1), *combinations(names, 2), tuple(names)}:
        unknown = {name: rule.facts[name] for name in missing}
        known = {name: rule.facts[name] for name in names if name not in missing}
        for facts in every_value(known):
            yield facts, [{**facts, **more} for more in every_value(unknown)]


def random_rule(chance: random.Random, depth: int = 3) -> dict[str, Any]:
    """A rule of up to three levels about two facts of each type."""
    kind = chance.choice(("all", "any", "not", "leaf", "leaf"))
    if depth == 0 or kind == "leaf":
        return random_leaf(chance)
    if kind == "not":
        return {"not": random_rule(chance, depth - 1)}
    return {kind: [random_rule(chance, depth - 1) for _ in range(chance.randint(1, 3))]}


def random_leaf(chance: random.Random) -> dict[str, Any]:
    """A comparison of a fact with a value, with values, or with another fact of its type."""
    type_ = chance.choice(list(VALUES))
    value: Any = chance.choice(VALUES[type_])
    if type_ == "list":
        operator = chance.choice((*HOLDING_ONE, *HOLDING))
        letters = chance.sample("abcd", 2)
        value = letters if operator in HOLDING else letters[0]
    else:
        operator = chance.choice(("equal", "notEqual", *(OF_NUMBERS if type_ == "number" else ())))
        if chance.random() < 0.2:
            value = {"fact": f"{type_}-{chance.randint(1, 2)}"}
        elif type_ != "flag" and chance.random() < 0.4:
            operator, value = chance.choice(ONE_OF), chance.sample(VALUES[type_], 2)
    negated = "not:" if chance.random() < 0.1 else ""
    fact = f"{type_}-{chance.randint(1, 2)}"
    return {"fact": fact, "operator": negated + operator, "value": value}


def test_forty_rules_are_compared() -> None:
    assert len(RULES) >= 40


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.place)
def test_a_rule_has_the_results_of_the_engine(engine: RulesEngine, rule: PublicRule) -> None:
    facts = every_value(rule.facts)

    assert ours(rule, facts) == engine.ask(rule, facts)
    assert {"pass", "fail"} == set(ours(rule, facts))


def test_random_rules_have_the_results_of_the_engine(engine: RulesEngine) -> None:
    chance = random.Random(34)
    compared = list[str]()
    while len(compared) < 29_000:
        rule = PublicRule("", {"all": [random_rule(chance)]}, {})
        facts = [
            {f"{type_}-{n}": chance.choice(some) for type_, some in VALUES.items() for n in (1, 2)}
            for _ in range(100)
        ]
        found = ours(rule, facts)
        assert found == engine.ask(rule, facts), rule.conditions
        compared += found
    assert min(compared.count("pass"), compared.count("fail")) > 10_000


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.place)
def test_a_rule_is_unknown_where_the_engine_throws_or_guesses(
    engine: RulesEngine, rule: PublicRule
) -> None:
    cases = list(lacking(rule))
    facts = [known for known, _ in cases]
    found = ours(rule, facts)
    thrown, guessed = engine.ask(rule, facts), engine.ask(rule, facts, guess=True)

    assert "throws" in thrown
    assert name_state(UNKNOWN) in found
    assert "throws" not in guessed
    for (_, known), state in zip(cases, found, strict=True):
        if state != name_state(UNKNOWN):
            assert set(engine.ask(rule, known)) == {state}


def test_the_engine_guesses_that_a_missing_fact_is_not_equal(engine: RulesEngine) -> None:
    conditions = {"all": [{"fact": "isArchived", "operator": "notEqual", "value": True}]}
    rule = PublicRule("", conditions, {"isArchived": [True]})

    assert engine.ask(rule, [{}], guess=True) == ["pass"]
    assert ours(rule, [{}]) == ["unknown"]
