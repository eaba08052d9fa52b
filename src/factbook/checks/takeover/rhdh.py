"""Thresholds of the scorecard plugin of RHDH, as `app-config.yaml` has them.

    scorecard:
      plugins:
        github:
          openPRs: {thresholds: {rules: [{key: success, expression: "<10"}, …]}}

Each metric becomes a check that fails where the first threshold that matches is `error`, and an
advisory one that passes where it is `success`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from factbook.checks.takeover import fact_names, thresholds
from factbook.checks.takeover.fact_names import Sources
from factbook.checks.takeover.remarks import Remarks
from factbook.checks.takeover.taken_over import MOST_ITEMS, TakenOver
from factbook.checks.takeover.thresholds import Threshold
from factbook.errors import InputError

_KEYS: Final = ("success", "warning", "error")
_ANNOTATIONS: Final = (
    "annotations scorecard.io/ of entities, which change thresholds or switch metrics off, are not "
    "in this file: give these entities exemptions, or checks of their own"
)
_DEEPEST: Final = 5


def taken_over(config: object, sources: Sources) -> TakenOver:
    """The checks of a configuration; raises InputError if it has no thresholds.

    `sources` are the ids of data sources here, by the name of the plugin's source there.
    """
    scorecard = config.get("scorecard") if isinstance(config, dict) else None
    plugins = scorecard.get("plugins") if isinstance(scorecard, dict) else None
    metrics = list(_metrics(plugins, ())) if isinstance(plugins, dict) else []
    if not metrics:
        raise InputError("There are no thresholds below scorecard.plugins.")
    if len(metrics) > MOST_ITEMS:
        raise InputError(f"There are more than {MOST_ITEMS} metrics.")
    found = TakenOver()
    for names, rules in metrics:
        _add(names, rules, sources, found)
    remarks = Remarks()
    remarks.change("", _ANNOTATIONS)
    for name in scorecard.keys() - {"plugins"} if isinstance(scorecard, dict) else ():
        remarks.change(str(name), "is left out: scorecards here have levels and a score")
    found.note("scorecard", remarks)
    return found


def _metrics(given: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
    """The names of each metric with thresholds, and these."""
    for name, value in given.items():
        if not isinstance(value, dict) or len(names) > _DEEPEST:
            continue
        if isinstance(value.get("thresholds"), dict):
            yield (*names, str(name)), value["thresholds"].get("rules")
        yield from _metrics(
            {key: one for key, one in value.items() if key != "thresholds"}, (*names, str(name))
        )


def _add(names: Sequence[str], rules: object, sources: Sources, found: TakenOver) -> None:
    """Add both checks of a metric, or the reasons that keep it from being taken over."""
    item, remarks = ".".join(names), Remarks()
    if len(names) < 2:
        remarks.refuse("thresholds", "are for all metrics of a source, which are not named here")
    read = _thresholds(rules, remarks)
    keys = [key for key, _ in read]
    if read and not {"success", "error"} <= set(keys):
        remarks.refuse("thresholds.rules", "need both success and error")
    source = sources.get(names[0]) or fact_names.identifier(names[0])
    fact = {"source": source, "fact": ".".join(names[1:])}
    ordered = [threshold for _, threshold in read]
    firsts = {
        key: [thresholds.first(ordered, i, fact) for i, one in enumerate(keys) if one == key]
        for key in _KEYS
    }
    id_ = fact_names.identifier(item)
    rule = {"not": thresholds.some(firsts["error"])}
    found.add("check", item, {"id": id_, "title": item, "rule": rule}, remarks)
    if firsts["warning"] and id_ in found.taken("check"):
        _add_advisory(id_, item, thresholds.some(firsts["success"]), found)


def _add_advisory(id_: str, item: str, rule: dict[str, Any], found: TakenOver) -> None:
    document = {
        "id": f"{id_}-no-warning",
        "title": f"{item}: no warning",
        "severity": "advisory",
        "rule": rule,
    }
    found.add("check", f"{item}: no warning", document, Remarks())


def _thresholds(rules: object, remarks: Remarks) -> list[tuple[str, Threshold]]:
    if not isinstance(rules, list) or not rules:
        remarks.refuse("thresholds.rules", "are missing")
        return []
    found = []
    for position, rule in enumerate(rules):
        path = f"thresholds.rules[{position}]"
        key = rule.get("key") if isinstance(rule, dict) else None
        threshold = thresholds.parse(rule.get("expression")) if isinstance(rule, dict) else None
        if threshold is None:
            remarks.refuse(f"{path}.expression", "is none that is known here")
        elif key not in _KEYS:
            remarks.refuse(f"{path}.key", f"is not one of {', '.join(_KEYS)}")
        else:
            found.append((str(key), threshold))
            for member in sorted(map(str, rule.keys() - {"key", "expression"})):
                remarks.change(f"{path}.{member}", "is left out")
    return found
