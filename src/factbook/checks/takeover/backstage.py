"""Checks of the Tech Insights plugin of Backstage, as `app-config.yaml` has them.

    techInsights:
      factChecker:
        checks:
          groupOwnerCheck: {type: json-rules-engine, name: …, factIds: […], rule: {conditions: …}}

The rank of a check's maturity becomes a level of the scorecard `maturity`.
"""

from collections.abc import Mapping
from typing import Any, Final

from factbook.checks.takeover import fact_names, fixes
from factbook.checks.takeover.fact_names import Sources
from factbook.checks.takeover.json_rules_engine import Translation
from factbook.checks.takeover.remarks import Remarks
from factbook.checks.takeover.taken_over import MOST_ITEMS, TakenOver
from factbook.errors import InputError

TYPE: Final = "json-rules-engine"
_SCORECARD: Final = "maturity"
_RANKS: Final = {1: "bronze", 2: "silver", 3: "gold"}
_MEMBERS: Final = frozenset(
    {
        "type",
        "name",
        "description",
        "factIds",
        "rule",
        "filter",
        "metadata",
        "successMetadata",
        "failureMetadata",
        "links",
    }
)


def taken_over(config: object, sources: Sources) -> TakenOver:
    """The checks of a configuration; raises InputError if it has none.

    `sources` are the ids of data sources here, by the id of the fact retriever there.
    """
    checks = _below(config, "techInsights", "factChecker", "checks")
    if not checks:
        raise InputError("There are no checks below techInsights.factChecker.checks.")
    if len(checks) > MOST_ITEMS:
        raise InputError(f"There are more than {MOST_ITEMS} checks.")
    found, ranks = TakenOver(), dict[str, Any]()
    for name, given in checks.items():
        remarks = Remarks()
        document = _check(str(name), given, sources, remarks)
        found.add("check", str(name), document, remarks)
        metadata = given.get("metadata") if isinstance(given, dict) else None
        if isinstance(metadata, dict) and isinstance(metadata.get("rank"), int):
            ranks[document.get("id", "")] = metadata["rank"]
    _add_scorecard(ranks, found)
    return found


def _check(name: str, given: object, sources: Sources, remarks: Remarks) -> dict[str, Any]:
    if not isinstance(given, dict):
        remarks.refuse("", "is no check")
        return {}
    if given.get("type") != TYPE:
        remarks.refuse("type", f"has to be {TYPE}")
    for member in sorted(map(str, given.keys() - _MEMBERS)):
        remarks.change(member, "is left out")
    success = given.get("successMetadata")
    if success:
        remarks.change("successMetadata", "is left out: nothing needs to be done there")
    return {
        "id": fact_names.identifier(name),
        "title": (fixes.text(given.get("name"), "name", remarks) or name).replace("\n", " "),
        "description": fixes.text(given.get("description"), "description", remarks),
        "appliesTo": given.get("filter"),
        "rule": _rule(given, sources, remarks),
        "fix": fixes.fix(given, remarks, metadata=("category", "rank")),
        "labels": _labels(given.get("metadata"), remarks),
    }


def _rule(given: Mapping[str, Any], sources: Sources, remarks: Remarks) -> dict[str, Any]:
    names = fact_names.listed(given.get("factIds"), remarks)
    for name in names:
        if name not in sources and name not in fact_names.RETRIEVERS:
            id_ = fact_names.identifier(name)
            remarks.change("factIds", f"{name} is taken for the data source {id_}")
    rule = given.get("rule")
    if not isinstance(rule, dict):
        remarks.refuse("rule", "is missing")
        return {}
    for member in rule.keys() - {"conditions"}:
        remarks.change(f"rule.{member}", "is left out; it changes no result")
    translation = Translation(fact_names.resolver(names, sources), remarks)
    return translation.of(rule.get("conditions"), "rule.conditions")


def _labels(metadata: object, remarks: Remarks) -> list[str]:
    """The categories; a remark names a rank that is none."""
    given = metadata if isinstance(metadata, dict) else {}
    if given.get("rank") is not None and not isinstance(given["rank"], int):
        remarks.change("metadata.rank", "is left out: it is no whole number")
    found = fixes.text(given.get("category"), "metadata.category", remarks)
    return found.split("\n") if found else []


def _add_scorecard(ranks: Mapping[str, Any], found: TakenOver) -> None:
    """Add the scorecard of maturity, if checks have ranks."""
    taken = set(found.taken("check"))
    kept = {id_: rank for id_, rank in ranks.items() if id_ in taken and isinstance(rank, int)}
    if not kept:
        return
    ordered = sorted(set(kept.values()))
    names = {rank: _RANKS.get(rank, f"rank-{rank}") for rank in ordered}
    if not set(ordered) <= _RANKS.keys():
        names = {rank: f"rank-{rank}" for rank in ordered}
    document = {
        "id": _SCORECARD,
        "title": "Maturity",
        "levels": list(names.values()),
        "entries": [{"check": id_, "level": names[rank]} for id_, rank in kept.items()],
    }
    found.add("scorecard", _SCORECARD, document, Remarks())


def _below(config: object, *names: str) -> Mapping[str, Any]:
    for name in names:
        config = config.get(name) if isinstance(config, dict) else None
    return config if isinstance(config, dict) else {}
