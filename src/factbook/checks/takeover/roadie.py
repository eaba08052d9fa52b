"""Checks and scorecards of Roadie, as its interface gives them.

    {"checks": [{"id": …, "name": …, "rule": {"conditions": {"all": [{"fact": …, "operator": …,
        "value": …, "dataSource": …}]}}}], "scorecards": […], "dataSources": […]}

Names of facts that are ids of theirs are looked up in the schemas of `dataSources`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from factbook.checks.takeover import fact_names, fixes
from factbook.checks.takeover.fact_names import Sources
from factbook.checks.takeover.json_rules_engine import Translation
from factbook.checks.takeover.remarks import Remarks
from factbook.checks.takeover.taken_over import MOST_ITEMS, TakenOver
from factbook.errors import InputError

# What a filter of theirs has as the value of a path that only has to be there.
_EXISTS: Final = ("*", "CATALOG_FILTER_EXISTS", "Symbol(CATALOG_FILTER_EXISTS_V0)")
_LEFT_OUT: Final = ("successMetadata", "draft", "schedule")

Names = Mapping[str, tuple[str, str]]


def taken_over(export: object, sources: Sources) -> TakenOver:
    """The checks and scorecards of an export; raises InputError if it has neither.

    `sources` are the ids of data sources here, by the id there.
    """
    checks, scorecards = _listed(export, "checks"), _listed(export, "scorecards")
    if not checks and not scorecards:
        raise InputError("There are neither checks nor scorecards.")
    if len(checks) + len(scorecards) > MOST_ITEMS:
        raise InputError(f"There are more than {MOST_ITEMS} checks and scorecards.")
    found, names = TakenOver(), _names(_listed(export, "dataSources"))
    ids = {str(one.get("id")): _id(one) for one in checks}
    for one in checks:
        remarks = Remarks()
        found.add("check", _item(one), _check(one, names, sources, remarks), remarks)
    for one in scorecards:
        remarks = Remarks()
        document = _scorecard(one, ids, set(found.taken("check")), remarks)
        found.add("scorecard", _item(one), document, remarks)
    return found


def _listed(export: object, name: str) -> list[dict[str, Any]]:
    """The items of a list, which may be the whole answer, or below `items`."""
    given = export.get(name) if isinstance(export, dict) else None
    if isinstance(given, dict):
        given = given.get("items")
    if name == "checks" and (isinstance(export, list) or _is_check(export)):
        given = export if isinstance(export, list) else [export]
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _is_check(export: object) -> bool:
    return isinstance(export, dict) and ("rule" in export or "conditions" in export)


def _item(given: Mapping[str, Any]) -> str:
    return str(given.get("name") or given.get("title") or given.get("id") or "?")


def _id(given: Mapping[str, Any]) -> str:
    """The id of a check here: its name, since theirs is a number that nobody knows."""
    return fact_names.identifier(_item(given).lower())


def _names(data_sources: Sequence[Mapping[str, Any]]) -> Names:
    """The source and the name of each fact that has an id of its own."""
    found = dict[str, tuple[str, str]]()
    for source in data_sources:
        schema = source.get("schema")
        for id_, fact in schema.items() if isinstance(schema, dict) else ():
            metadata = fact.get("metadata") if isinstance(fact, dict) else None
            key = metadata.get("key") if isinstance(metadata, dict) else None
            found[str(id_)] = (str(source.get("id")), str(key or id_))
    return found


def _check(
    given: Mapping[str, Any], names: Names, sources: Sources, remarks: Remarks
) -> dict[str, Any]:
    for member in _LEFT_OUT:
        if given.get(member):
            remarks.change(member, "is left out")
    rule = given.get("rule")
    conditions = rule.get("conditions") if isinstance(rule, dict) else given.get("conditions")
    own = fact_names.listed(given.get("factIds"), remarks)
    own += [given["dataSource"]] if isinstance(given.get("dataSource"), str) else []
    prepared = _prepared(conditions, names, sources)
    resolve = fact_names.resolver(own, sources)

    def resolved(fact: str) -> Mapping[str, str]:
        source, mark, name = fact.partition("\0")
        return {"source": source, "fact": name} if mark else resolve(fact)

    return {
        "id": _id(given),
        "title": _item(given),
        "description": fixes.text(given.get("description"), "description", remarks),
        "owner": given.get("owner"),
        "appliesTo": _applies_to(given.get("entityFilter")),
        "rule": Translation(resolved, remarks).of(prepared, "rule.conditions"),
        "onUnknown": "fail" if given.get("failIfMissing") is True else None,
        "fix": fixes.fix(given, remarks),
        "labels": given.get("labels"),
    }


def _prepared(condition: Any, names: Names, sources: Sources) -> Any:
    """The conditions with the source of each fact that names one put before its name."""
    if isinstance(condition, list):
        return [_prepared(one, names, sources) for one in condition]
    if not isinstance(condition, dict):
        return condition
    found = {
        name: _prepared(value, names, sources) if name in ("all", "any", "not", "value") else value
        for name, value in condition.items()
        if name != "dataSource"
    }
    fact, source = condition.get("fact"), condition.get("dataSource")
    if isinstance(fact, str) and (fact in names or isinstance(source, str)):
        theirs, name = names.get(fact, (str(source), fact))
        here = sources.get(theirs) or fact_names.identifier(theirs)
        found["fact"] = f"{here}\0{name}"
    return found


def _applies_to(given: Any) -> Any:
    """A filter, in which a path that only has to be there says so in our way."""
    if isinstance(given, list):
        return [_applies_to(one) for one in given]
    if not isinstance(given, dict):
        return given
    return {path: {"exists": True} if value in _EXISTS else value for path, value in given.items()}


def _scorecard(
    given: Mapping[str, Any], ids: Mapping[str, str], taken: set[str], remarks: Remarks
) -> dict[str, Any]:
    entries, levels = list[dict[str, Any]](), list[str]()
    listed = given.get("checks")
    for position, one in enumerate(listed if isinstance(listed, list) else []):
        their = one.get("id") or one.get("checkId") if isinstance(one, dict) else one
        level = one.get("level") if isinstance(one, dict) else None
        id_ = ids.get(str(their))
        if id_ not in taken:
            remarks.change(f"checks[{position}]", f"is left out: {their} was not taken over")
            continue
        if isinstance(level, str) and fact_names.identifier(level):
            levels += [] if level in levels else [level]
            entries.append({"check": id_, "level": fact_names.identifier(level)})
        else:
            entries.append({"check": id_})
    if levels:
        remarks.change("levels", f"are in the order in which checks name them: {', '.join(levels)}")
    return {
        "id": _id(given),
        "title": _item(given),
        "description": fixes.text(given.get("description"), "description", remarks),
        "appliesTo": _applies_to(given.get("entityFilter")),
        "levels": [{"id": fact_names.identifier(one), "title": one} for one in levels],
        "entries": entries,
    }
