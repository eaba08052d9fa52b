"""Checks of Backstage's Tech Insights and of Roadie, whose conditions are json-rules-engine's.

Backstage has them in `app-config.yaml`; Roadie gives checks and scorecards by its interface.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from factbook.checks.rules import check_definition
from factbook.checks.rules.language import DEEPEST_CONDITION
from factbook.checks.takeover import taken_over
from factbook.checks.takeover.taken_over import MOST_TAKEN_OVER, Remarks, Sources, TakenOver
from factbook.errors import InputError

_FAILURE: Final = "failureMetadata"
_ADDRESSES: Final = ("url", "href", "link")
# An object of these members is one link; others are maps of links by name.
_OF_LINKS: Final = frozenset(
    {*_ADDRESSES, "title", "icon", "type", "name", "text", "label", "description"}
)
_NULL: Final = {"equal": "isUnknown", "notEqual": "isKnown"}
_IGNORED: Final = ("name", "priority", "id")
_LEAF_MEMBERS: Final = frozenset({"fact", "operator", "value", "path", "params", *_IGNORED})
_STEP: Final = re.compile(
    r"\.(?P<name>[A-Za-z_]\w*)|\[(?P<index>\d+|\*)\]|\[(?:'(?P<single>[^'\\]+)'|\"(?P<double>[^\"\\]+)\")\]",
    re.ASCII,
)
TYPE: Final = "json-rules-engine"
_RANK_SCORECARD: Final = "maturity"
_RANKS: Final = {1: "bronze", 2: "silver", 3: "gold"}
# What a filter of theirs has as the value of a path that only has to be there.
_EXISTS: Final = ("*", "CATALOG_FILTER_EXISTS", "Symbol(CATALOG_FILTER_EXISTS_V0)")
_LEFT_OUT: Final = ("successMetadata", "draft", "schedule")


def make_fix(
    given: Mapping[str, Any], remarks: Remarks, *, metadata: Collection[str] = ()
) -> dict[str, Any]:
    """The first link and the first solution of a check; remarks name the others.

    `failureMetadata`, about the failure alone, comes before `metadata`, whose members `metadata`
    the caller reads, and `links`.
    """
    tables = {name: _read_fix_table(given, name, remarks) for name in (_FAILURE, "metadata")}
    failure = tables[_FAILURE]
    named = [(f"{_FAILURE}.link", failure.get("link")), ("links", given.get("links"))]
    links = dict(link for path, value in named for link in _read_links(value, path, remarks))
    solutions = {
        f"{name}.solution": read_fix_text(found.get("solution"), f"{name}.solution", remarks)
        for name, found in tables.items()
    }
    known = {_FAILURE: {"link", "solution"}, "metadata": {"solution", *metadata}}
    for name, members in known.items():
        for member in sorted(tables[name].keys() - members):
            remarks.change(f"{name}.{member}", "is left out")
    found = {
        "link": _take_first(links, "link", remarks),
        "instructions": _take_first(solutions, "solution", remarks),
    }
    return {name: value for name, value in found.items() if value}


def _read_fix_table(given: Mapping[str, Any], name: str, remarks: Remarks) -> Mapping[str, Any]:
    """A member that is an object; a text or a list of texts is its solution."""
    value = given.get(name)
    if isinstance(value, dict):
        return {str(key): one for key, one in value.items()}
    if isinstance(value, str | list):
        return {"solution": value}
    if value is not None:
        remarks.change(name, "is left out: it is no object")
    return {}


def read_fix_text(value: object, path: str, remarks: Remarks) -> str | None:
    """The text of a member, of a list that of a line each; a remark names what is no text."""
    lines = []
    for place, one in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(one, str | int | float):
            lines.append(str(one))
        elif one is not None:
            where = f"{path}[{place}]" if isinstance(value, list) else path
            remarks.change(where, "is left out: it is no text")
    return "\n".join(lines) or None


def _read_links(given: object, path: str, remarks: Remarks) -> Iterator[tuple[str, str]]:
    """The links that a check here can have, by their paths."""
    for place, item in _read_items(given, path):
        link = item
        if isinstance(item, dict):
            link = next((item[name] for name in _ADDRESSES if item.get(name)), None)
        try:
            if not isinstance(link, str):
                raise InputError("is no text")
            check_definition.parse_link_template(link)
        except InputError as error:
            remarks.change(place, f"is left out: its address {error.message}")
        else:
            yield place, link


def _read_items(given: object, path: str) -> Iterator[tuple[str, object]]:
    """Each link of a list, of a map by name, or the only one."""
    if isinstance(given, list):
        yield from ((f"{path}[{place}]", item) for place, item in enumerate(given))
    elif isinstance(given, dict) and not given.keys() <= _OF_LINKS:
        yield from ((f"{path}.{name}", item) for name, item in given.items())
    elif given not in (None, "", {}):
        yield path, given


def _take_first(values: Mapping[str, Any], noun: str, remarks: Remarks) -> Any:
    """The first value that there is."""
    there = [(path, value) for path, value in values.items() if value]
    for path, value in there[1:]:
        if value != there[0][1]:
            remarks.change(path, f"is left out: a check has one {noun}, that of {there[0][0]}")
    return there[0][1] if there else None


# The members `source` and `fact` for a name; raises LookupError, whose text says what is wrong.
Resolve = Callable[[str], Mapping[str, str]]


ENGINE_OPERATORS: Final = (
    "equal",
    "notEqual",
    "in",
    "notIn",
    "contains",
    "doesNotContain",
    "lessThan",
    "lessThanInclusive",
    "greaterThan",
    "greaterThanInclusive",
)


# Decorated operators that mean the same as one of ours; `not:` stands before any.
_DECORATED: Final = {
    "everyFact:notEqual": "doesNotContain",
    "everyValue:contains": "containsAll",
    "everyValue:notEqual": "notIn",
    "someFact:equal": "contains",
    "someFact:in": "containsAny",
    "someValue:contains": "containsAny",
    "someValue:equal": "in",
    "swap:contains": "in",
    "swap:in": "contains",
}


# Those that mean the contrary of one of ours.
_CONTRARY: Final = {
    "everyFact:notIn": "containsAny",
    "everyValue:doesNotContain": "containsAny",
    "swap:doesNotContain": "in",
    "swap:notIn": "contains",
}


class Translation:
    """Rewrites the conditions of one rule; `shared` are the conditions that others name."""

    def __init__(
        self, resolve: Resolve, remarks: Remarks, shared: Mapping[str, Any] | None = None
    ) -> None:
        self._resolve = resolve
        self._remarks = remarks
        self._shared = shared or {}

    def of(self, condition: object, path: str, depth: int = 0) -> dict[str, Any]:
        """The condition as one of ours; what cannot be rewritten is remarked."""
        if not isinstance(condition, dict):
            self._remarks.refuse(path, "is not a condition")
            return {}
        if depth > 2 * DEEPEST_CONDITION:
            self._remarks.refuse(path, "is nested too deeply, or names itself")
            return {}
        for name in _IGNORED:
            if name in condition and name != "name":
                self._remarks.change(f"{path}.{name}", "is left out; it changes no result")
        if "condition" in condition:
            return self._named(condition["condition"], f"{path}.condition", depth)
        for name in ("all", "any"):
            if name in condition:
                return {name: self._each(condition[name], f"{path}.{name}", depth)}
        if "not" in condition:
            return {"not": self.of(condition["not"], f"{path}.not", depth + 1)}
        return self._leaf(condition, path)

    def _each(self, conditions: object, path: str, depth: int) -> list[dict[str, Any]]:
        if not isinstance(conditions, list) or not conditions:
            self._remarks.refuse(path, "has no conditions; the engine takes that for true")
            return []
        return [self.of(one, f"{path}[{i}]", depth + 1) for i, one in enumerate(conditions)]

    def _named(self, name: object, path: str, depth: int) -> dict[str, Any]:
        if not isinstance(name, str) or name not in self._shared:
            self._remarks.refuse(path, "names a condition that is not there")
            return {}
        return self.of(self._shared[name], path, depth + 1)

    def _leaf(self, condition: dict[str, Any], path: str) -> dict[str, Any]:
        for name in condition.keys() - _LEAF_MEMBERS:
            self._remarks.refuse(f"{path}.{name}", "is not known here")
        if condition.get("params"):
            self._remarks.refuse(f"{path}.params", "are arguments of a program; facts have none")
        reference = self._reference(condition, path)
        operator = condition.get("operator")
        if "value" not in condition:
            self._remarks.refuse(f"{path}.value", "is missing")
        elif condition["value"] is None:
            return self._compared_with_null(reference, operator, path)
        value = condition.get("value")
        if isinstance(value, dict):
            value = self._other(value, f"{path}.value")
        return self._compared(reference, str(operator), value, path)

    def _compared(
        self, reference: dict[str, Any], operator: str, value: Any, path: str
    ) -> dict[str, Any]:
        if operator.startswith("not:"):
            return {"not": self._compared(reference, operator.removeprefix("not:"), value, path)}
        if operator in _CONTRARY:
            ours = _CONTRARY[operator]
            return {"not": {**reference, "operator": ours, "value": value}}
        if operator not in ENGINE_OPERATORS and operator not in _DECORATED:
            self._remarks.refuse(f"{path}.operator", f"{operator} is not one of the engine's own")
        elif operator in ("in", "notIn"):
            value = self._listed(value, f"{path}.value")
        return {**reference, "operator": _DECORATED.get(operator, operator), "value": value}

    def _listed(self, value: Any, path: str) -> Any:
        if isinstance(value, list) and any(one is None or one in (True, False) for one in value):
            if not all(type(one) in (int, float, str) for one in value):
                self._remarks.refuse(path, "has more than strings and numbers")
        elif isinstance(value, str):
            self._remarks.refuse(path, "is a text, in which the engine looks for a part")
        return value

    def _compared_with_null(
        self, reference: dict[str, Any], operator: object, path: str
    ) -> dict[str, Any]:
        if not isinstance(operator, str) or operator not in _NULL:
            self._remarks.refuse(f"{path}.value", "is null, which only equality can be asked of")
            return reference
        ours = _NULL[operator]
        self._remarks.change(path, f"compares with null; it asks with {ours} now")
        return {**reference, "operator": ours}

    def _other(self, value: dict[str, Any], path: str) -> dict[str, Any]:
        if "fact" not in value:
            self._remarks.refuse(path, "is an object, which no fact is compared with")
            return value
        if value.get("params"):
            self._remarks.refuse(f"{path}.params", "are arguments of a program; facts have none")
        return self._reference(value, path)

    def _reference(self, condition: Mapping[str, Any], path: str) -> dict[str, Any]:
        fact = condition.get("fact")
        try:
            if not isinstance(fact, str) or not fact:
                raise LookupError("is not the name of a fact")
            found: dict[str, Any] = dict(self._resolve(fact))
        except LookupError as error:
            self._remarks.refuse(f"{path}.fact", str(error.args[0]))
            found = {}
        if condition.get("path"):
            inside = make_jmespath(condition["path"])
            if inside is None:
                self._remarks.refuse(f"{path}.path", "has more than names and places")
            elif inside:
                found["path"] = inside
        return found


def make_jmespath(path: object) -> str | None:
    """A JSONPath of names and places as JMESPath: empty for the whole, None for any other."""
    if not isinstance(path, str) or not path.startswith("$"):
        return None
    steps, position = list[str](), 1
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None:
            return None
        name = found["name"] or found["single"] or found["double"]
        quoted = name if name is None or name.isidentifier() else f'"{name}"'
        steps.append(f".{quoted}" if name else f"[{found['index']}]")
        position = found.end()
    return "".join(steps).removeprefix(".")


_BACKSTAGE_MEMBERS: Final = frozenset(
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


def take_over_backstage(config: object, sources: Sources) -> TakenOver:
    """The checks of a configuration; raises InputError if it has none.

    `sources` are the ids of data sources here, by the id of the fact retriever there.
    """
    checks = _walk_checks(config, "techInsights", "factChecker", "checks")
    if not checks:
        raise InputError("There are no checks below techInsights.factChecker.checks.")
    if len(checks) > MOST_TAKEN_OVER:
        raise InputError(f"There are more than {MOST_TAKEN_OVER} checks.")
    found, ranks = TakenOver(), dict[str, Any]()
    for name, given in checks.items():
        remarks = Remarks()
        document = _convert_backstage_check(str(name), given, sources, remarks)
        found.add("check", str(name), document, remarks)
        metadata = given.get("metadata") if isinstance(given, dict) else None
        if isinstance(metadata, dict) and isinstance(metadata.get("rank"), int):
            ranks[document.get("id", "")] = metadata["rank"]
    _add_rank_scorecard(ranks, found)
    return found


def _convert_backstage_check(
    name: str, given: object, sources: Sources, remarks: Remarks
) -> dict[str, Any]:
    if not isinstance(given, dict):
        remarks.refuse("", "is no check")
        return {}
    if given.get("type") != TYPE:
        remarks.refuse("type", f"has to be {TYPE}")
    for member in sorted(map(str, given.keys() - _BACKSTAGE_MEMBERS)):
        remarks.change(member, "is left out")
    success = given.get("successMetadata")
    if success:
        remarks.change("successMetadata", "is left out: nothing needs to be done there")
    return {
        "id": taken_over.make_identifier(name),
        "title": (read_fix_text(given.get("name"), "name", remarks) or name).replace("\n", " "),
        "description": read_fix_text(given.get("description"), "description", remarks),
        "appliesTo": given.get("filter"),
        "rule": _convert_backstage_rule(given, sources, remarks),
        "fix": make_fix(given, remarks, metadata=("category", "rank")),
        "labels": _read_labels(given.get("metadata"), remarks),
    }


def _convert_backstage_rule(
    given: Mapping[str, Any], sources: Sources, remarks: Remarks
) -> dict[str, Any]:
    names = taken_over.list_names(given.get("factIds"), remarks)
    for name in names:
        if name not in sources and name not in taken_over.RETRIEVERS:
            id_ = taken_over.make_identifier(name)
            remarks.change("factIds", f"{name} is taken for the data source {id_}")
    rule = given.get("rule")
    if not isinstance(rule, dict):
        remarks.refuse("rule", "is missing")
        return {}
    for member in rule.keys() - {"conditions"}:
        remarks.change(f"rule.{member}", "is left out; it changes no result")
    translation = Translation(taken_over.make_resolver(names, sources), remarks)
    return translation.of(rule.get("conditions"), "rule.conditions")


def _read_labels(metadata: object, remarks: Remarks) -> list[str]:
    """The categories; a remark names a rank that is none."""
    given = metadata if isinstance(metadata, dict) else {}
    if given.get("rank") is not None and not isinstance(given["rank"], int):
        remarks.change("metadata.rank", "is left out: it is no whole number")
    found = read_fix_text(given.get("category"), "metadata.category", remarks)
    return found.split("\n") if found else []


def _add_rank_scorecard(ranks: Mapping[str, Any], found: TakenOver) -> None:
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
        "id": _RANK_SCORECARD,
        "title": "Maturity",
        "levels": list(names.values()),
        "entries": [{"check": id_, "level": names[rank]} for id_, rank in kept.items()],
    }
    found.add("scorecard", _RANK_SCORECARD, document, Remarks())


def _walk_checks(config: object, *names: str) -> Mapping[str, Any]:
    for name in names:
        config = config.get(name) if isinstance(config, dict) else None
    return config if isinstance(config, dict) else {}


Names = Mapping[str, tuple[str, str]]


def take_over_roadie(export: object, sources: Sources) -> TakenOver:
    """The checks and scorecards of an export; raises InputError if it has neither.

    `sources` are the ids of data sources here, by the id there.
    """
    checks, scorecards = _list_exported(export, "checks"), _list_exported(export, "scorecards")
    if not checks and not scorecards:
        raise InputError("There are neither checks nor scorecards.")
    if len(checks) + len(scorecards) > MOST_TAKEN_OVER:
        raise InputError(f"There are more than {MOST_TAKEN_OVER} checks and scorecards.")
    found, names = TakenOver(), _name_data_sources(_list_exported(export, "dataSources"))
    ids = {str(one.get("id")): _read_id(one) for one in checks}
    for one in checks:
        remarks = Remarks()
        found.add(
            "check", _name_item(one), _convert_roadie_check(one, names, sources, remarks), remarks
        )
    for one in scorecards:
        remarks = Remarks()
        document = _convert_roadie_scorecard(one, ids, set(found.taken("check")), remarks)
        found.add("scorecard", _name_item(one), document, remarks)
    return found


def _list_exported(export: object, name: str) -> list[dict[str, Any]]:
    """The items of a list, which may be the whole answer, or below `items`."""
    given = export.get(name) if isinstance(export, dict) else None
    if isinstance(given, dict):
        given = given.get("items")
    if name == "checks" and (isinstance(export, list) or _is_roadie_check(export)):
        given = export if isinstance(export, list) else [export]
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _is_roadie_check(export: object) -> bool:
    return isinstance(export, dict) and ("rule" in export or "conditions" in export)


def _name_item(given: Mapping[str, Any]) -> str:
    return str(given.get("name") or given.get("title") or given.get("id") or "?")


def _read_id(given: Mapping[str, Any]) -> str:
    """The id of a check here: its name, since theirs is a number that nobody knows."""
    return taken_over.make_identifier(_name_item(given).lower())


def _name_data_sources(data_sources: Sequence[Mapping[str, Any]]) -> Names:
    """The source and the name of each fact that has an id of its own."""
    found = dict[str, tuple[str, str]]()
    for source in data_sources:
        schema = source.get("schema")
        for id_, fact in schema.items() if isinstance(schema, dict) else ():
            metadata = fact.get("metadata") if isinstance(fact, dict) else None
            key = metadata.get("key") if isinstance(metadata, dict) else None
            found[str(id_)] = (str(source.get("id")), str(key or id_))
    return found


def _convert_roadie_check(
    given: Mapping[str, Any], names: Names, sources: Sources, remarks: Remarks
) -> dict[str, Any]:
    for member in _LEFT_OUT:
        if given.get(member):
            remarks.change(member, "is left out")
    rule = given.get("rule")
    conditions = rule.get("conditions") if isinstance(rule, dict) else given.get("conditions")
    own = taken_over.list_names(given.get("factIds"), remarks)
    own += [given["dataSource"]] if isinstance(given.get("dataSource"), str) else []
    prepared = _prepare_condition(conditions, names, sources)
    resolve = taken_over.make_resolver(own, sources)

    def resolved(fact: str) -> Mapping[str, str]:
        source, mark, name = fact.partition("\0")
        return {"source": source, "fact": name} if mark else resolve(fact)

    return {
        "id": _read_id(given),
        "title": _name_item(given),
        "description": read_fix_text(given.get("description"), "description", remarks),
        "owner": given.get("owner"),
        "appliesTo": _convert_filter(given.get("entityFilter")),
        "rule": Translation(resolved, remarks).of(prepared, "rule.conditions"),
        "onUnknown": "fail" if given.get("failIfMissing") is True else None,
        "fix": make_fix(given, remarks),
        "labels": given.get("labels"),
    }


def _prepare_condition(condition: Any, names: Names, sources: Sources) -> Any:
    """The conditions with the source of each fact that names one put before its name."""
    if isinstance(condition, list):
        return [_prepare_condition(one, names, sources) for one in condition]
    if not isinstance(condition, dict):
        return condition
    found = {
        name: _prepare_condition(value, names, sources)
        if name in ("all", "any", "not", "value")
        else value
        for name, value in condition.items()
        if name != "dataSource"
    }
    fact, source = condition.get("fact"), condition.get("dataSource")
    if isinstance(fact, str) and (fact in names or isinstance(source, str)):
        theirs, name = names.get(fact, (str(source), fact))
        here = sources.get(theirs) or taken_over.make_identifier(theirs)
        found["fact"] = f"{here}\0{name}"
    return found


def _convert_filter(given: Any) -> Any:
    """A filter, in which a path that only has to be there says so in our way."""
    if isinstance(given, list):
        return [_convert_filter(one) for one in given]
    if not isinstance(given, dict):
        return given
    return {path: {"exists": True} if value in _EXISTS else value for path, value in given.items()}


def _convert_roadie_scorecard(
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
        if isinstance(level, str) and taken_over.make_identifier(level):
            levels += [] if level in levels else [level]
            entries.append({"check": id_, "level": taken_over.make_identifier(level)})
        else:
            entries.append({"check": id_})
    if levels:
        remarks.change("levels", f"are in the order in which checks name them: {', '.join(levels)}")
    return {
        "id": _read_id(given),
        "title": _name_item(given),
        "description": read_fix_text(given.get("description"), "description", remarks),
        "appliesTo": _convert_filter(given.get("entityFilter")),
        "levels": [{"id": taken_over.make_identifier(one), "title": one} for one in levels],
        "entries": entries,
    }
