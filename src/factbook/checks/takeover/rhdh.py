"""Thresholds of the scorecard plugin of RHDH, as `app-config.yaml` has them.

Of `<10`, `10-50`, `!=0` and `==true`, the first that matches counts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from factbook.checks.takeover import taken_over
from factbook.checks.takeover.taken_over import MOST_TAKEN_OVER, Remarks, Sources, TakenOver
from factbook.errors import InputError

_NUMBER: Final = r"-?\d{1,15}(?:\.\d{1,15})?"
_COMPARISON: Final = re.compile(
    rf"(?P<sign>>=|<=|==|!=|>|<)\s*(?P<value>{_NUMBER}|true|false)", re.ASCII
)
_RANGE: Final = re.compile(rf"(?P<low>{_NUMBER})\s*-\s*(?P<high>{_NUMBER})", re.ASCII)
_KEYS: Final = ("success", "warning", "error")
_ANNOTATIONS: Final = (
    "annotations scorecard.io/ of entities, which change thresholds or switch metrics off, are not "
    "in this file: give these entities exemptions, or checks of their own"
)
_DEEPEST: Final = 5


_THRESHOLD_OPERATORS: Final = {
    ">": "greaterThan",
    ">=": "greaterThanInclusive",
    "<": "lessThan",
    "<=": "lessThanInclusive",
    "==": "equal",
    "!=": "notEqual",
}


ThresholdValue = float | bool


class Threshold(NamedTuple):
    """An expression as comparisons that all have to hold."""

    comparisons: tuple[tuple[str, ThresholdValue], ...]

    def conditions(self, fact: Mapping[str, str]) -> list[dict[str, Any]]:
        """The comparisons as conditions on a fact."""
        return [
            {**fact, "operator": _THRESHOLD_OPERATORS[sign], "value": value}
            for sign, value in self.comparisons
        ]

    def matches(self, value: ThresholdValue) -> bool:
        """Return true if all comparisons hold for the value."""
        return all(_holds_for(sign, value, wanted) for sign, wanted in self.comparisons)


def parse_threshold(text: object) -> Threshold | None:
    """The threshold in an expression; None if it is none."""
    if not isinstance(text, str):
        return None
    text = text.strip()
    if found := _COMPARISON.fullmatch(text):
        value = _parse_value(found["value"])
        ordered = found["sign"] in (">", ">=", "<", "<=")
        return None if ordered and isinstance(value, bool) else Threshold(((found["sign"], value),))
    if found := _RANGE.fullmatch(text):
        low, high = _parse_value(found["low"]), _parse_value(found["high"])
        return Threshold(((">=", low), ("<=", high))) if low <= high else None
    return None


def make_first_rule(
    thresholds: Sequence[Threshold], place: int, fact: Mapping[str, str]
) -> dict[str, Any]:
    """The condition that the threshold at a place is the first of them that matches."""
    own = thresholds[place]
    earlier = [
        _join_conditions("all", one.conditions(fact))
        for one in thresholds[:place]
        if any(
            one.matches(value) and own.matches(value)
            for value in _list_threshold_samples([one, own])
        )
    ]
    return _join_conditions("all", [*own.conditions(fact), *({"not": one} for one in earlier)])


def join_some(conditions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The condition that one of several holds."""
    return _join_conditions("any", conditions)


def _join_conditions(name: str, conditions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return conditions[0] if len(conditions) == 1 else {name: list(conditions)}


def _list_threshold_samples(thresholds: Sequence[Threshold]) -> list[ThresholdValue]:
    """A value on either side of everything that is compared with."""
    bounds = sorted({value for one in thresholds for _, value in one.comparisons})
    if any(isinstance(value, bool) for value in bounds):
        return [True, False]
    between = [(low + high) / 2 for low, high in pairwise(bounds)]
    return [bounds[0] - 1, *bounds, *between, bounds[-1] + 1]


def _parse_value(text: str) -> ThresholdValue:
    if text in ("true", "false"):
        return text == "true"
    return float(text) if "." in text else int(text)


def _holds_for(sign: str, value: ThresholdValue, wanted: ThresholdValue) -> bool:
    match sign:
        case ">":
            return value > wanted
        case ">=":
            return value >= wanted
        case "<":
            return value < wanted
        case "<=":
            return value <= wanted
        case "==":
            return value == wanted
    return value != wanted


def take_over_rhdh(config: object, sources: Sources) -> TakenOver:
    """The checks of a configuration; raises InputError if it has no thresholds.

    `sources` are the ids of data sources here, by the name of the plugin's source there.
    """
    scorecard = config.get("scorecard") if isinstance(config, dict) else None
    plugins = scorecard.get("plugins") if isinstance(scorecard, dict) else None
    metrics = list(_list_metrics(plugins, ())) if isinstance(plugins, dict) else []
    if not metrics:
        raise InputError("There are no thresholds below scorecard.plugins.")
    if len(metrics) > MOST_TAKEN_OVER:
        raise InputError(f"There are more than {MOST_TAKEN_OVER} metrics.")
    found = TakenOver()
    for names, rules in metrics:
        _add_metric(names, rules, sources, found)
    remarks = Remarks()
    remarks.change("", _ANNOTATIONS)
    for name in scorecard.keys() - {"plugins"} if isinstance(scorecard, dict) else ():
        remarks.change(str(name), "is left out: scorecards here have levels and a score")
    found.note("scorecard", remarks)
    return found


def _list_metrics(given: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
    """The names of each metric with thresholds, and these."""
    for name, value in given.items():
        if not isinstance(value, dict) or len(names) > _DEEPEST:
            continue
        if isinstance(value.get("thresholds"), dict):
            yield (*names, str(name)), value["thresholds"].get("rules")
        yield from _list_metrics(
            {key: one for key, one in value.items() if key != "thresholds"}, (*names, str(name))
        )


def _add_metric(names: Sequence[str], rules: object, sources: Sources, found: TakenOver) -> None:
    """Add both checks of a metric, or the reasons that keep it from being taken over."""
    item, remarks = ".".join(names), Remarks()
    if len(names) < 2:
        remarks.refuse("thresholds", "are for all metrics of a source, which are not named here")
    read = _read_thresholds(rules, remarks)
    keys = [key for key, _ in read]
    if read and not {"success", "error"} <= set(keys):
        remarks.refuse("thresholds.rules", "need both success and error")
    source = sources.get(names[0]) or taken_over.make_identifier(names[0])
    fact = {"source": source, "fact": ".".join(names[1:])}
    ordered = [threshold for _, threshold in read]
    firsts = {
        key: [make_first_rule(ordered, i, fact) for i, one in enumerate(keys) if one == key]
        for key in _KEYS
    }
    id_ = taken_over.make_identifier(item)
    rule = {"not": join_some(firsts["error"])}
    found.add("check", item, {"id": id_, "title": item, "rule": rule}, remarks)
    if firsts["warning"] and id_ in found.taken("check"):
        _add_advisory(id_, item, join_some(firsts["success"]), found)


def _add_advisory(id_: str, item: str, rule: dict[str, Any], found: TakenOver) -> None:
    document = {
        "id": f"{id_}-no-warning",
        "title": f"{item}: no warning",
        "severity": "advisory",
        "rule": rule,
    }
    found.add("check", f"{item}: no warning", document, Remarks())


def _read_thresholds(rules: object, remarks: Remarks) -> list[tuple[str, Threshold]]:
    if not isinstance(rules, list) or not rules:
        remarks.refuse("thresholds.rules", "are missing")
        return []
    found = []
    for position, rule in enumerate(rules):
        path = f"thresholds.rules[{position}]"
        key = rule.get("key") if isinstance(rule, dict) else None
        threshold = parse_threshold(rule.get("expression")) if isinstance(rule, dict) else None
        if threshold is None:
            remarks.refuse(f"{path}.expression", "is none that is known here")
        elif key not in _KEYS:
            remarks.refuse(f"{path}.key", f"is not one of {', '.join(_KEYS)}")
        else:
            found.append((str(key), threshold))
            for member in sorted(map(str, rule.keys() - {"key", "expression"})):
                remarks.change(f"{path}.{member}", "is left out")
    return found
