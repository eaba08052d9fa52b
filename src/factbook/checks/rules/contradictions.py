"""Conditions that hold for every value, or for none: mistakes that no result would show.

Each fact of a rule is tried with a value on either side of everything that the rule compares it
with. What cannot be tried so, such as a pattern, counts as able to hold and not to hold.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final

from factbook.checks.rules import samples
from factbook.checks.rules.condition import Every, FactCondition, Negation, Rule, Some
from factbook.checks.rules.fact_reference import FactReference
from factbook.checks.rules.operators import KNOWLEDGE
from factbook.checks.rules.samples import SampleFacet
from factbook.checks.state import FAIL, PASS, UNKNOWN
from factbook.facts.members import Report
from factbook.facts.schema import FactType

# Combinations of values that are tried for one part of a rule.
_MOST: Final = 300
_ALWAYS: Final = "holds for every value; to ask if there is one, use the operator isKnown"
_NEVER: Final = "holds for no value"

Types = Callable[[FactReference], FactType | None]
# What is supposed: a value by facet, and the reason for which a fact is unknown, if it is.
_Supposed = Mapping[SampleFacet, Any]


def report_constant(rule: Rule, path: str, types: Types, report: Report) -> None:
    """Report each part of a rule that always holds, or never does, innermost first."""
    _report(rule, path, types, report)


def _report(rule: Rule, path: str, types: Types, report: Report) -> bool:
    """Return true if a part was reported; what is around it is not looked at then."""
    parts = list(_parts(rule, path))
    reported = [_report(part, where, types, report) for where, part in parts]
    if True in reported:
        return True
    found = _constant(rule, types)
    if found is not None:
        report(path, _ALWAYS if found == PASS else _NEVER)
        return True
    return _report_pairs(rule, parts, types, report)


def _report_pairs(
    rule: Rule, parts: Sequence[tuple[str, Rule]], types: Types, report: Report
) -> bool:
    """The same for the comparisons of each one fact, where there are too many facts to try all."""
    if not isinstance(rule, Every | Some):
        return False
    by_fact: dict[FactReference, list[tuple[str, FactCondition]]] = {}
    for where, part in parts:
        if isinstance(part, FactCondition):
            by_fact.setdefault(part.fact, []).append((where, part))
    for same in by_fact.values():
        found = _constant(type(rule)(tuple(part for _, part in same)), types)
        if len(same) > 1 and found is not None:
            report(
                same[-1][0], f"together with {same[0][0]} {_ALWAYS if found == PASS else _NEVER}"
            )
            return True
    return False


def _parts(rule: Rule, path: str) -> Iterator[tuple[str, Rule]]:
    match rule:
        case Negation():
            yield f"{path}.not", rule.condition
        case Every() | Some():
            name = "all" if isinstance(rule, Every) else "any"
            for position, one in enumerate(rule.conditions):
                yield f"{path}.{name}[{position}]", one


def _constant(rule: Rule, types: Types) -> int | None:
    """The only state among pass and fail that the rule can have; None if it can have both."""
    tried = samples.of_rule(rule, types)
    if prod(map(len, tried.values())) > _MOST:
        return None
    seen = set[int]()
    for values in product(*tried.values()):
        seen.add(_state(rule, dict(zip(tried, values, strict=True))))
        if {PASS, FAIL} <= seen:
            return None
    return FAIL if PASS not in seen else PASS


def _state(rule: Rule, supposed: _Supposed) -> int:
    match rule:
        case FactCondition():
            return _leaf_state(rule, supposed)
        case Negation():
            return {PASS: FAIL, FAIL: PASS}.get(_state(rule.condition, supposed), UNKNOWN)
        case Every() | Some():
            states = {_state(one, supposed) for one in rule.conditions}
            first, last = (FAIL, PASS) if isinstance(rule, Every) else (PASS, FAIL)
            return next((one for one in (first, UNKNOWN) if one in states), last)


def _leaf_state(leaf: FactCondition, supposed: _Supposed) -> int:
    reason = supposed.get(samples.knowledge(leaf.fact))
    if leaf.operator in KNOWLEDGE:
        return PASS if samples.is_so(leaf, reason) else FAIL
    if reason is not None:
        return UNKNOWN
    try:
        return PASS if samples.holds(leaf, supposed[samples.facet(leaf)]) else FAIL
    except (TypeError, ValueError):
        return UNKNOWN
