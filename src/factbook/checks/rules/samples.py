"""Values to try the comparisons of a rule with: one on either side of everything wanted.

A comparison asks about one facet of a fact: its value, its size, its time, its age, or something
that is tried as true and as false.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Final, NamedTuple

from factbook.checks.rules import wanted_values
from factbook.checks.rules.condition import FactCondition, Rule, leaves
from factbook.checks.rules.fact_reference import FactReference
from factbook.checks.rules.operators import KNOWLEDGE
from factbook.facts.schema import FactType

# Not a value that anyone compares with.
_OTHER_TEXT: Final = "\0"
_OTHER_REASON: Final = "\0"
_VALUES: Final = frozenset(
    {
        "equal",
        "notEqual",
        "in",
        "notIn",
        "lessThan",
        "lessThanInclusive",
        "greaterThan",
        "greaterThanInclusive",
    }
)
_SIZES: Final[dict[str, Callable[[int, int], bool]]] = {
    "isEmpty": lambda size, _: size == 0,
    "isNotEmpty": lambda size, _: size > 0,
    "sizeAtLeast": lambda size, wanted: size >= wanted,
    "sizeAtMost": lambda size, wanted: size <= wanted,
}
# A comparison, and the one that holds wherever it does not.
_OPPOSITES: Final = {
    "notEqual": "equal",
    "notIn": "in",
    "doesNotContain": "contains",
    "greaterThanInclusive": "lessThan",
    "greaterThan": "lessThanInclusive",
    "versionBelow": "versionAtLeast",
}


class SampleFacet(NamedTuple):
    """Aspect of a fact in a comparison; those that differ in `wanted` are tried on their own."""

    fact: FactReference
    name: str
    wanted: str = ""


def of_rule(
    rule: Rule, types: Callable[[FactReference], FactType | None]
) -> dict[SampleFacet, list[Any]]:
    """The samples to try of every facet that the rule asks about."""
    found: dict[SampleFacet, list[FactCondition]] = {}
    for _, leaf in leaves(rule):
        asked = knowledge(leaf.fact) if leaf.operator in KNOWLEDGE else facet(leaf)
        found.setdefault(asked, []).append(leaf)
    return {asked: _samples(asked, same, types(asked.fact)) for asked, same in found.items()}


def knowledge(fact: FactReference) -> SampleFacet:
    """The facet whose samples are reasons for being unknown, and None for a known fact."""
    return SampleFacet(fact, "knowledge")


def is_so(leaf: FactCondition, reason: str | None) -> bool:
    """The answer of a comparison about knowledge."""
    if leaf.operator == "reasonIs":
        return bool(reason == leaf.value)
    return (reason is None) is (leaf.operator == "isKnown")


def facet(leaf: FactCondition) -> SampleFacet:
    """The facet that a comparison of a known value asks about."""
    if isinstance(leaf.value, FactReference):
        return _opaque(leaf)
    if leaf.operator in _VALUES:
        return SampleFacet(leaf.fact, "value", "in any case" if leaf.ignores_case else "")
    if leaf.operator in _SIZES:
        return SampleFacet(leaf.fact, "size")
    if leaf.operator == "freshWithin":
        return SampleFacet(leaf.fact, "freshness")
    if leaf.operator in ("olderThan", "newerThan") or isinstance(leaf.value, dict):
        return SampleFacet(leaf.fact, "age")
    return (
        SampleFacet(leaf.fact, "moment") if leaf.operator in ("before", "after") else _opaque(leaf)
    )


def values(leaves: Iterable[FactCondition]) -> list[Any]:
    """Values of a fact to try comparisons of its value with; texts can be shown to people."""
    found = _values([one for leaf in leaves for one in _listed(leaf.value)], None)
    return ["other" if one == _OTHER_TEXT else one for one in found]


def holds(leaf: FactCondition, sample: Any) -> bool:
    """The answer of a comparison for a sample of its facet; raises TypeError if it has none."""
    match facet(leaf).name:
        case "value":
            return leaf.test is not None and leaf.test(leaf.value)(sample)
        case "size":
            return _SIZES[leaf.operator](sample, leaf.value)
        case "freshness":
            return bool(sample <= _bound(leaf))
        case "age":
            is_older = leaf.operator in ("olderThan", "before")
            return bool(sample > _bound(leaf) if is_older else sample < _bound(leaf))
        case "moment":
            is_before = leaf.operator == "before"
            return bool(sample < _bound(leaf) if is_before else sample > _bound(leaf))
    return bool(sample is (leaf.operator not in _OPPOSITES))


def _opaque(leaf: FactCondition) -> SampleFacet:
    name = _OPPOSITES.get(leaf.operator, leaf.operator)
    return SampleFacet(leaf.fact, name, repr((leaf.value, leaf.ignores_case)))


def _samples(
    asked: SampleFacet, same: Iterable[FactCondition], type_: FactType | None
) -> list[Any]:
    match asked.name:
        case "knowledge":
            reasons = {leaf.value for leaf in same if leaf.operator == "reasonIs"}
            return [None, _OTHER_REASON, *sorted(reasons)]
        case "value":
            return _values([one for leaf in same for one in _listed(leaf.value)], type_)
        case "size":
            sizes = [leaf.value or 0 for leaf in same]
            return [size for size in _around(sizes, is_whole=True) if size >= 0]
        case "freshness":
            ages = [_bound(leaf) for leaf in same]
            return [age for age in _around(ages, is_whole=True) if age >= 0]
        case "age" | "moment":
            return _around([_bound(leaf) for leaf in same], is_whole=True)
    return [True, False]


def _bound(leaf: FactCondition) -> int:
    """The age that a comparison of times has as its bound, or the moment."""
    if not isinstance(leaf.value, dict):
        return wanted_values.moment(leaf.value)
    length = wanted_values.duration(leaf.value)
    return -length if leaf.operator in ("before", "after") else length


def _values(wanted: list[Any], type_: FactType | None) -> list[Any]:
    numbers = [one for one in wanted if type(one) in (int, float)]
    texts = {one for one in wanted if isinstance(one, str)}
    found: list[Any] = _around(numbers, is_whole=type_ == "integer") if numbers else []
    if texts:
        found += [*sorted(texts), _OTHER_TEXT]
    if any(isinstance(one, bool) for one in wanted):
        found += [True, False]
    return found


def _around(bounds: Iterable[float], *, is_whole: bool) -> list[float]:
    """The bounds, and a number below, between and above them."""
    ordered = sorted(set(bounds))
    if is_whole:
        near = {int(one // 1) + shift for one in ordered for shift in (-1, 0, 1)}
        return sorted(near)
    between = [(low + high) / 2 for low, high in pairwise(ordered)]
    return [ordered[0] - 1, *ordered, *between, ordered[-1] + 1]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
