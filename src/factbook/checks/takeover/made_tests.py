"""Tests for checks that were taken over: facts with which the rule passes, and fails."""

from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Any, Final

from factbook.checks import state
from factbook.checks.definitions.check import Check
from factbook.checks.definitions.check_test import CheckTest
from factbook.checks.rules import condition, samples
from factbook.checks.rules.condition import FactCondition
from factbook.checks.rules.fact_reference import FactReference
from factbook.checks.trials.trial import outcome

_MOST: Final = 2_000
_OF_SETS: Final = ("contains", "doesNotContain", "containsAny", "containsAll")

Facts = dict[str, dict[str, Any]]


def of(check: Check) -> list[dict[str, Any]]:
    """A test for each of pass, fail and unknown, as far as they are found by trying values."""
    found = dict[str, Facts]()
    for facts in islice(_every(check), _MOST):
        found.setdefault(outcome(check, CheckTest("", facts=facts), 0), facts)
        if {"pass", "fail"} <= found.keys():
            break
    found.setdefault(outcome(check, CheckTest(""), 0), {})
    words = [word for word in state.WORDS if word in found]
    return [{"facts": found[word], "expect": word} for word in words]


def _every(check: Check) -> Iterator[Facts]:
    """Every combination of the values to try of each fact."""
    by_fact: dict[FactReference, list[FactCondition]] = {}
    for _, leaf in condition.leaves(check.rule):
        by_fact.setdefault(leaf.fact, []).append(leaf)
        if isinstance(leaf.value, FactReference):
            by_fact.setdefault(leaf.value, [])
    tried = {fact: _values(leaves) for fact, leaves in by_fact.items()}
    for values in product(*tried.values()):
        facts: Facts = {}
        for fact, value in zip(tried, values, strict=True):
            facts.setdefault(fact.source, {})[fact.fact] = value
        yield facts


def _values(leaves: list[FactCondition]) -> list[Any]:
    sets = [leaf.value for leaf in leaves if leaf.operator in _OF_SETS]
    if sets:
        items = [one for value in sets for one in (value if isinstance(value, list) else [value])]
        return [list(dict.fromkeys(items)), [], *([one] for one in dict.fromkeys(items))]
    plain = [leaf for leaf in leaves if samples.facet(leaf).name == "value"]
    return samples.values(plain) or [1, 2, 3]


def with_tests(document: Mapping[str, Any], check: Check) -> dict[str, Any]:
    """The document of a check with tests, unless its facts are parts of objects."""
    leaves = [leaf for _, leaf in condition.leaves(check.rule)]
    if any(reference.path for reference in condition.references(check.rule)) or not leaves:
        return dict(document)
    return {**document, "tests": of(check)}
