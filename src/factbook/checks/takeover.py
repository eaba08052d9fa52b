"""Conversion of other products' checks to documents for files, with remarks on losses.

Backstage's Tech Insights and Roadie use json-rules-engine conditions: Backstage in
`app-config.yaml`, Roadie in API exports. RHDH's scorecard plugin has thresholds such as `<10`,
`10-50`, `!=0` and `==true`; the first match counts. Fact names of other products are mapped to the
sources that have these facts here.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice, pairwise, product
from typing import Any, Final, NamedTuple

from factbook.checks import state
from factbook.checks.definitions import scorecard
from factbook.checks.document_readers import DefinitionDocument, Kind
from factbook.checks.rules import check_definition, check_trial, language
from factbook.checks.rules.check_definition import Check, CheckTest, parse_check
from factbook.checks.rules.check_trial import evaluate_test
from factbook.checks.rules.language import DEEPEST_CONDITION, FactCondition, FactReference
from factbook.errors import InputError, InvalidItemsError
from factbook.integrations import catalog

# The check can't be converted.
REFUSED: Final = "refused"
# The check is converted, but loses something or changes its meaning.
CHANGED: Final = "changed"
_RENAMED: Final[Mapping[tuple[str, str], str]] = {
    ("techdocs", "hasAnnotationBackstageIoTechdocsRef"): "hasTechdocsRef",
}
_KNOWN: Final[Mapping[str, Collection[str]]] = {
    source.id: frozenset(fact.name for fact in source.schema) for source in catalog.SOURCES
}
_NOT_OF_IDS: Final = re.compile(r"[^A-Za-z0-9._-]+")
MOST_TAKEN_OVER: Final = 2_000
_MOST_TRIED: Final = 2_000
_VARIABLE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_OF_SETS: Final = ("contains", "doesNotContain", "containsAny", "containsAll")


class Remark(NamedTuple):
    """A remark on a place in the converted configuration; `kind` is REFUSED or CHANGED."""

    path: str
    kind: str
    message: str


class Remarks:
    """The remarks on a document, in order."""

    def __init__(self) -> None:
        self.found: list[Remark] = []

    @property
    def refuses(self) -> bool:
        """True if something can't be converted."""
        return any(one.kind == REFUSED for one in self.found)

    def refuse(self, path: str, message: str) -> None:
        """Add a problem that prevents the conversion."""
        self.found.append(Remark(path, REFUSED, message))

    def change(self, path: str, message: str) -> None:
        """Add a loss or a change of meaning."""
        self.found.append(Remark(path, CHANGED, message))


# Backstage's built-in fact retrievers, and the catalog sources that replace them.
RETRIEVERS: Final[Mapping[str, str]] = {
    "entityMetadataFactRetriever": "entity-metadata",
    "entityOwnershipFactRetriever": "entity-ownership",
    "techdocsFactRetriever": "techdocs",
}


Sources = Mapping[str, str]


def make_identifier(text: str) -> str:
    """Convert a text to an id: other characters become dashes."""
    return _NOT_OF_IDS.sub("-", text).strip("-._")[:100]


def list_names(names: object, remarks: Remarks) -> list[str]:
    """The sources that a check lists, or its only one; invalid names get a remark."""
    found = [names] if isinstance(names, str) else names if isinstance(names, list) else []
    if not isinstance(names, str | list | None) or not all(isinstance(one, str) for one in found):
        remarks.change("factIds", "has parts that are left out: they aren't text")
    return [one for one in found if isinstance(one, str)]


def make_resolver(listed: Sequence[str], sources: Sources) -> Callable[[str], Mapping[str, str]]:
    """A function that finds a fact's source among those listed.

    `sources` maps source ids there to ids here. The function raises LookupError for a fact that
    none of the sources has, or several could have: it never guesses.
    """
    ids = [sources.get(name) or RETRIEVERS.get(name) or make_identifier(name) for name in listed]

    def resolve(fact: str) -> Mapping[str, str]:
        having = [id_ for id_ in ids if _match_name(id_, fact) in _KNOWN.get(id_, ())]
        others = [id_ for id_ in ids if id_ not in _KNOWN]
        possible = [*having, *others]
        if len(possible) == 1:
            return {"source": possible[0], "fact": _match_name(possible[0], fact)}
        if not possible:
            raise LookupError(f"{fact} isn't a fact of {' or '.join(ids) or 'any listed source'}")
        raise LookupError(f"{fact} could be a fact of {' or '.join(possible)}")

    return resolve


def _match_name(source: str, fact: str) -> str:
    return _RENAMED.get((source, fact), fact)


Facts = dict[str, dict[str, Any]]


class ItemRemark(NamedTuple):
    """A remark on an item of the converted configuration."""

    item: str
    remark: Remark


class TakenOver:
    """The converted documents so far, and all remarks."""

    def __init__(self) -> None:
        self.documents: list[DefinitionDocument] = []
        self.remarks: list[ItemRemark] = []

    def add(self, kind: Kind, item: str, document: dict[str, Any], remarks: Remarks) -> None:
        """Add a document, with tests for a check, unless a remark or this service refuses it."""
        document = {
            name: value for name, value in document.items() if value not in (None, [], {}, "")
        }
        if document.get("id") in self.taken(kind):
            remarks.refuse("id", f"{document['id']} is already the id of another {kind}")
        for path, name in _list_variables(document):
            remarks.change(path, f"{name} is a variable of the configuration, and isn't filled in")
        if not remarks.refuses:
            try:
                if kind == "check":
                    check = parse_check(document)
                    facts = list(language.walk_references(check.rule))
                    # There are no sample values for parts of objects.
                    if facts and not any(fact.path for fact in facts):
                        document["tests"] = _make_tests(check)
                else:
                    scorecard.parse_scorecard(document)
                self.documents.append(DefinitionDocument(kind, document))
            except InvalidItemsError as error:
                for problem in error.problem_list:
                    remarks.refuse(problem["path"], problem["message"])
        self.note(item, remarks)

    def note(self, item: str, remarks: Remarks) -> None:
        """Add the remarks on an item."""
        self.remarks += [ItemRemark(item, remark) for remark in remarks.found]

    def taken(self, kind: Kind) -> list[str]:
        """The ids of the documents of a kind."""
        return [one.document["id"] for one in self.documents if one.kind == kind]


def _list_variables(document: Any) -> Iterator[tuple[str, str]]:
    """The app-config variables in texts of a document, each with its path."""
    waiting = [("", document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str) and (found := _VARIABLE.search(value)):
            yield path, found[0]
        elif isinstance(value, dict):
            waiting += [(f"{path}.{name}".removeprefix("."), one) for name, one in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{path}[{position}]", one) for position, one in enumerate(value)]


def _make_tests(check: Check) -> list[dict[str, Any]]:
    """A test each for pass, fail and unknown, if trying values finds one."""
    found = dict[str, Facts]()
    for facts in islice(_make_every_test(check), _MOST_TRIED):
        found.setdefault(evaluate_test(check, CheckTest("", facts=facts), 0), facts)
        if {"pass", "fail"} <= found.keys():
            break
    found.setdefault(evaluate_test(check, CheckTest(""), 0), {})
    words = [word for word in state.WORDS if word in found]
    return [{"facts": found[word], "expect": word} for word in words]


def _make_every_test(check: Check) -> Iterator[Facts]:
    """Every combination of sample values of the facts."""
    by_fact: dict[FactReference, list[FactCondition]] = {}
    for _, leaf in language.walk_leaves(check.rule):
        by_fact.setdefault(leaf.fact, []).append(leaf)
        if isinstance(leaf.value, FactReference):
            by_fact.setdefault(leaf.value, [])
    tried = {fact: _pick_values(leaves) for fact, leaves in by_fact.items()}
    for values in product(*tried.values()):
        facts: Facts = {}
        for fact, value in zip(tried, values, strict=True):
            facts.setdefault(fact.source, {})[fact.fact] = value
        yield facts


def _pick_values(leaves: list[FactCondition]) -> list[Any]:
    sets = [leaf.value for leaf in leaves if leaf.operator in _OF_SETS]
    if sets:
        items = [one for value in sets for one in (value if isinstance(value, list) else [value])]
        return [list(dict.fromkeys(items)), [], *([one] for one in dict.fromkeys(items))]
    plain = [leaf for leaf in leaves if check_trial.find_facet(leaf).name == "value"]
    return check_trial.sample_values(plain) or [1, 2, 3]


_FAILURE: Final = "failureMetadata"
_ADDRESSES: Final = ("url", "href", "link")
# An object with only these members is one link; other objects map names to links.
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
# Filter values there for "the path exists".
_EXISTS: Final = ("*", "CATALOG_FILTER_EXISTS", "Symbol(CATALOG_FILTER_EXISTS_V0)")
_LEFT_OUT: Final = ("successMetadata", "draft", "schedule")


def make_fix(
    given: Mapping[str, Any], remarks: Remarks, *, metadata: Collection[str] = ()
) -> dict[str, Any]:
    """The first link and first solution of a check; the others get remarks.

    `failureMetadata` takes precedence over `metadata` and `links`. `metadata` names the members of
    `metadata` that the caller reads.
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
    """A member that is an object; a text or list of texts becomes its solution."""
    value = given.get(name)
    if isinstance(value, dict):
        return {str(key): one for key, one in value.items()}
    if isinstance(value, str | list):
        return {"solution": value}
    if value is not None:
        remarks.change(name, "is left out: it isn't an object")
    return {}


def read_fix_text(value: object, path: str, remarks: Remarks) -> str | None:
    """The text of a member, a list joined by line breaks; other values get a remark."""
    lines = []
    for place, one in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(one, str | int | float) and not isinstance(one, bool):
            lines.append(str(one))
        elif one is not None:
            where = f"{path}[{place}]" if isinstance(value, list) else path
            remarks.change(where, "is left out: it isn't text")
    return "\n".join(lines) or None


def _read_links(given: object, path: str, remarks: Remarks) -> Iterator[tuple[str, str]]:
    """The valid links, with their paths."""
    for place, item in _read_items(given, path):
        link = item
        if isinstance(item, dict):
            link = next((item[name] for name in _ADDRESSES if item.get(name)), None)
        try:
            if not isinstance(link, str):
                raise InputError("isn't text")
            check_definition.parse_link_template(link)
        except InputError as error:
            remarks.change(place, f"is left out: its address {error.message}")
        else:
            yield place, link


def _read_items(given: object, path: str) -> Iterator[tuple[str, object]]:
    """Each link of a list or a map, or the only one, with its path."""
    if isinstance(given, list):
        yield from ((f"{path}[{place}]", item) for place, item in enumerate(given))
    elif isinstance(given, dict) and not given.keys() <= _OF_LINKS:
        yield from ((f"{path}.{name}", item) for name, item in given.items())
    elif given not in (None, "", {}):
        yield path, given


def _take_first(values: Mapping[str, Any], noun: str, remarks: Remarks) -> Any:
    there = [(path, value) for path, value in values.items() if value]
    for path, value in there[1:]:
        if value != there[0][1]:
            remarks.change(path, f"is left out: a check has one {noun}, taken from {there[0][0]}")
    return there[0][1] if there else None


# Members `source` and `fact` for a name; raises LookupError with an explanation.
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


# Decorated operators with an equivalent here; `not:` can precede each.
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


# Operators that are the opposite of one here.
_CONTRARY: Final = {
    "everyFact:notIn": "containsAny",
    "everyValue:doesNotContain": "containsAny",
    "swap:doesNotContain": "in",
    "swap:notIn": "contains",
}


class Translation:
    """Converts the conditions of a rule; `shared` are conditions that can be referenced by name."""

    def __init__(
        self, resolve: Resolve, remarks: Remarks, shared: Mapping[str, Any] | None = None
    ) -> None:
        self._resolve = resolve
        self._remarks = remarks
        self._shared = shared or {}

    def of(self, condition: object, path: str, depth: int = 0) -> dict[str, Any]:
        """The converted condition; problems are added to the remarks."""
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
            shared = condition["condition"]
            if not isinstance(shared, str) or shared not in self._shared:
                self._remarks.refuse(f"{path}.condition", "names a condition that doesn't exist")
                return {}
            return self.of(self._shared[shared], f"{path}.condition", depth + 1)
        for name in ("all", "any"):
            if name not in condition:
                continue
            items, place = condition[name], f"{path}.{name}"
            if not isinstance(items, list) or not items:
                self._remarks.refuse(place, "has no conditions, which the engine treats as true")
                return {name: []}
            return {
                name: [self.of(item, f"{place}[{i}]", depth + 1) for i, item in enumerate(items)]
            }
        if "not" in condition:
            return {"not": self.of(condition["not"], f"{path}.not", depth + 1)}
        return self._leaf(condition, path)

    def _leaf(self, condition: dict[str, Any], path: str) -> dict[str, Any]:
        for name in condition.keys() - _LEAF_MEMBERS:
            self._remarks.refuse(f"{path}.{name}", "isn't a member that conditions can have")
        if condition.get("params"):
            self._remarks.refuse(f"{path}.params", "are arguments, which facts don't have")
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
            self._remarks.refuse(f"{path}.operator", f"{operator} isn't built into the engine")
        elif operator in ("in", "notIn"):
            value = self._listed(value, f"{path}.value")
        return {**reference, "operator": _DECORATED.get(operator, operator), "value": value}

    def _listed(self, value: Any, path: str) -> Any:
        if isinstance(value, list) and any(one is None or one in (True, False) for one in value):
            if not all(type(one) in (int, float, str) for one in value):
                self._remarks.refuse(path, "has more than strings and numbers")
        elif isinstance(value, str):
            self._remarks.refuse(path, "is text, in which the engine searches for a substring")
        return value

    def _compared_with_null(
        self, reference: dict[str, Any], operator: object, path: str
    ) -> dict[str, Any]:
        if not isinstance(operator, str) or operator not in _NULL:
            self._remarks.refuse(f"{path}.value", "is null, which needs equal or notEqual")
            return reference
        ours = _NULL[operator]
        self._remarks.change(path, f"compares with null; it becomes {ours}")
        return {**reference, "operator": ours}

    def _other(self, value: dict[str, Any], path: str) -> dict[str, Any]:
        if "fact" not in value:
            self._remarks.refuse(path, "is an object, which facts can't be compared with")
            return value
        if value.get("params"):
            self._remarks.refuse(f"{path}.params", "are arguments, which facts don't have")
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
                self._remarks.refuse(f"{path}.path", "has more than names and indexes")
            elif inside:
                found["path"] = inside
        return found


def make_jmespath(path: object) -> str | None:
    """A JSONPath of names and indexes as JMESPath: empty for the root, None for other paths."""
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
    """Convert the checks of a configuration; raises InputError if it has none.

    `sources` maps ids of fact retrievers there to data source ids here.
    """
    checks: Any = config
    for name in ("techInsights", "factChecker", "checks"):
        checks = checks.get(name) if isinstance(checks, dict) else None
    if not isinstance(checks, dict) or not checks:
        raise InputError("There are no checks below techInsights.factChecker.checks.")
    if len(checks) > MOST_TAKEN_OVER:
        raise InputError(f"There are more than {MOST_TAKEN_OVER} checks.")
    found, ranks = TakenOver(), dict[str, int]()
    for name, given in checks.items():
        remarks = Remarks()
        document = _convert_backstage_check(str(name), given, sources, remarks)
        found.add("check", str(name), document, remarks)
        metadata = given.get("metadata") if isinstance(given, dict) else None
        if isinstance(metadata, dict) and type(metadata.get("rank")) is int:
            ranks[document.get("id", "")] = metadata["rank"]
    _add_rank_scorecard(ranks, found)
    return found


def _convert_backstage_check(
    name: str, given: object, sources: Sources, remarks: Remarks
) -> dict[str, Any]:
    if not isinstance(given, dict):
        remarks.refuse("", "isn't a check")
        return {}
    if given.get("type") != TYPE:
        remarks.refuse("type", f"has to be {TYPE}")
    for member in sorted(map(str, given.keys() - _BACKSTAGE_MEMBERS)):
        remarks.change(member, "is left out")
    success = given.get("successMetadata")
    if success:
        remarks.change("successMetadata", "is left out: a check that passes needs no fix")
    return {
        "id": make_identifier(name),
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
    names = list_names(given.get("factIds"), remarks)
    for name in names:
        if name not in sources and name not in RETRIEVERS:
            id_ = make_identifier(name)
            remarks.change("factIds", f"{name} is assumed to be the data source {id_}")
    rule = given.get("rule")
    if not isinstance(rule, dict):
        remarks.refuse("rule", "is missing")
        return {}
    for member in rule.keys() - {"conditions"}:
        remarks.change(f"rule.{member}", "is left out; it changes no result")
    translation = Translation(make_resolver(names, sources), remarks)
    return translation.of(rule.get("conditions"), "rule.conditions")


def _read_labels(metadata: object, remarks: Remarks) -> list[str]:
    """The categories; an invalid rank gets a remark."""
    given = metadata if isinstance(metadata, dict) else {}
    if given.get("rank") is not None and type(given["rank"]) is not int:
        remarks.change("metadata.rank", "is left out: it isn't a whole number")
    found = read_fix_text(given.get("category"), "metadata.category", remarks)
    return found.split("\n") if found else []


def _add_rank_scorecard(ranks: Mapping[str, int], found: TakenOver) -> None:
    """Add the maturity scorecard if checks have ranks."""
    taken = set(found.taken("check"))
    kept = {id_: rank for id_, rank in ranks.items() if id_ in taken}
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


Names = Mapping[str, tuple[str, str]]


def take_over_roadie(export: object, sources: Sources) -> TakenOver:
    """Convert the checks and scorecards of an export; raises InputError if it has neither.

    `sources` maps data source ids there to ids here.
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
    """The items of a list, which may be the whole response or its member `items`."""
    items = export.get(name) if isinstance(export, dict) else None
    if isinstance(items, dict):
        items = items.get("items")
    if name == "checks":
        if isinstance(export, list):
            items = export
        elif isinstance(export, dict) and ("rule" in export or "conditions" in export):
            items = [export]  # a single check
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _name_item(given: Mapping[str, Any]) -> str:
    return str(given.get("name") or given.get("title") or given.get("id") or "?")


def _read_id(given: Mapping[str, Any]) -> str:
    """The id of a check here: its name, since the numeric ids there mean nothing to people."""
    return make_identifier(_name_item(given).lower())


def _name_data_sources(data_sources: Sequence[Mapping[str, Any]]) -> Names:
    """The source and name of each fact, by fact id."""
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
    own = list_names(given.get("factIds"), remarks)
    own += [given["dataSource"]] if isinstance(given.get("dataSource"), str) else []
    prepared = _prepare_condition(conditions, names, sources)
    resolve = make_resolver(own, sources)

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
    """The conditions, with fact names prefixed by their source."""
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
        here = sources.get(theirs) or make_identifier(theirs)
        found["fact"] = f"{here}\0{name}"
    return found


def _convert_filter(given: Any) -> Any:
    """A filter in this service's format, including "the path exists"."""
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
        if isinstance(level, str) and make_identifier(level):
            levels += [] if level in levels else [level]
            entries.append({"check": id_, "level": make_identifier(level)})
        else:
            entries.append({"check": id_})
    if levels:
        remarks.change("levels", f"are in the order in which checks name them: {', '.join(levels)}")
    return {
        "id": _read_id(given),
        "title": _name_item(given),
        "description": read_fix_text(given.get("description"), "description", remarks),
        "appliesTo": _convert_filter(given.get("entityFilter")),
        "levels": [{"id": make_identifier(one), "title": one} for one in levels],
        "entries": entries,
    }


_NUMBER: Final = r"-?\d{1,15}(?:\.\d{1,15})?"
_COMPARISON: Final = re.compile(
    rf"(?P<sign>>=|<=|==|!=|>|<)\s*(?P<value>{_NUMBER}|true|false)", re.ASCII
)
_RANGE: Final = re.compile(rf"(?P<low>{_NUMBER})\s*-\s*(?P<high>{_NUMBER})", re.ASCII)
_KEYS: Final = ("success", "warning", "error")
_ANNOTATIONS: Final = (
    "scorecard.io/ annotations of entities, which change thresholds or switch metrics off, aren't "
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
    """A threshold as comparisons that all have to hold."""

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
    """Parse a threshold expression; None if it is invalid."""
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
    """A condition that holds if the threshold at `place` is the first that matches."""
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
    """A condition that holds if any of these hold."""
    return _join_conditions("any", conditions)


def _join_conditions(name: str, conditions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return conditions[0] if len(conditions) == 1 else {name: list(conditions)}


def _list_threshold_samples(thresholds: Sequence[Threshold]) -> list[ThresholdValue]:
    """Values on either side of every bound."""
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
    """Convert the checks of a configuration; raises InputError if it has no thresholds.

    `sources` maps the plugin's source names to data source ids here.
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
    """The names of each metric that has thresholds, and the thresholds."""
    for name, value in given.items():
        if not isinstance(value, dict) or len(names) > _DEEPEST:
            continue
        if isinstance(value.get("thresholds"), dict):
            yield (*names, str(name)), value["thresholds"].get("rules")
        yield from _list_metrics(
            {key: one for key, one in value.items() if key != "thresholds"}, (*names, str(name))
        )


def _add_metric(names: Sequence[str], rules: object, sources: Sources, found: TakenOver) -> None:
    """Add both checks of a metric, or the reasons why it can't be converted."""
    item, remarks = ".".join(names), Remarks()
    if len(names) < 2:
        remarks.refuse("thresholds", "apply to all metrics of a source, which aren't named here")
    read = _read_thresholds(rules, remarks)
    keys = [key for key, _ in read]
    if read and not {"success", "error"} <= set(keys):
        remarks.refuse("thresholds.rules", "need both success and error")
    source = sources.get(names[0]) or make_identifier(names[0])
    fact = {"source": source, "fact": ".".join(names[1:])}
    ordered = [threshold for _, threshold in read]
    firsts = {
        key: [make_first_rule(ordered, i, fact) for i, one in enumerate(keys) if one == key]
        for key in _KEYS
    }
    id_ = make_identifier(item)
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
            remarks.refuse(f"{path}.expression", "isn't a supported comparison or range")
        elif key not in _KEYS:
            remarks.refuse(f"{path}.key", f"is not one of {', '.join(_KEYS)}")
        else:
            found.append((str(key), threshold))
            for member in sorted(map(str, rule.keys() - {"key", "expression"})):
                remarks.change(f"{path}.{member}", "is left out")
    return found
