"""Entity selection: search arguments, conditions, and the matching entities.

Conditions are those of checks (`checks.rules.language`), with three-valued results. A condition
without a source uses the first source that knows its fact, as in the metric tools. Text comparison
ignores case unless `caseSensitive` is true. Entities are evaluated in batches, by reference.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog import kinds
from factbook.catalog import ref as refs
from factbook.catalog.filters import (
    EntityFilter,
    list_predicate_fields,
    make_filter_condition,
    parse_predicate,
)
from factbook.catalog.kinds import RELATIONS
from factbook.catalog.store import browse, entity_query, related_entities, stored_entities
from factbook.catalog.store.conditions import AllOf, Condition, Contains, Has, Related
from factbook.catalog.store.entity_query import count_by_kind
from factbook.catalog.store.related_entities import Dangling, FilterCandidate
from factbook.checks.definitions import definition_writes
from factbook.checks.definitions.definition_writes import CheckContext
from factbook.checks.results import entity_evaluation, result_queries, state_store
from factbook.checks.results.entity_evaluation import CheckCache, CheckSet, SlotStates
from factbook.checks.results.result_queries import ResultAge
from factbook.checks.rules import language
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.language import (
    CHECKS,
    ENTITY,
    KNOWLEDGE_OPERATORS,
    TEXT_OPERATORS,
    Every,
    FactCondition,
    FactReference,
    Negation,
    Rule,
    Some,
)
from factbook.checks.rules.rule_evaluation import Evaluate, compile_rule
from factbook.checks.state import OUT, PASS, UNKNOWN
from factbook.errors import InputError, ToolError, suggestion
from factbook.facts.datasource import DataSource
from factbook.facts.schema import SHAPES
from factbook.storage import Database
from factbook.storage.database import LONGEST_SEARCH, limit_time
from factbook.tools.sources import suggest_facts
from factbook.tools.tool import Context, shorten_value

# No indexed value is longer.
_LONGEST_NAME: Final = 300
_MOST_UNKNOWN: Final = 1_000
_MOST_SUGGESTED: Final = 5
# Values that an error message searches for similar ones.
_COMPARED: Final = 1_000
_KEYS: Final = {
    "kind": "kind",
    "namespace": "metadata.namespace",
    "type": "spec.type",
    "lifecycle": "spec.lifecycle",
    "tag": "metadata.tags",
}
# Fields that every entity has, but that the field index lacks.
_UNLISTED: Final = ("kind", "metadata.name", "metadata.namespace", "metadata.uid")
_FORM: Final = (
    'Write {"fact": "branchProtection.enabled", "operator": "equal", "value": false}, or all, any '
    "or not of such."
)
_MOST_MISTAKES: Final = 5
# For a fact without a source: its expanded conditions grow with the square of the sources.
_MOST_SOURCES: Final = 10
_NOTHING: Final[Mapping[str, Any]] = {}
_KINDS: Final = ("all", "any")
# Comparisons that pass for an absent value, as for an empty list.
_HOLD_FOR_NOTHING: Final = frozenset(
    {"notEqual", "notIn", "doesNotContain", "isEmpty", "sizeAtMost"}
)
# Up to this many candidates are all evaluated, so the counts on a page are complete. The limit is
# lower in a large catalog, to keep the answer as fast as in any other.
_FEW: Final = 2_500
_FEW_OF_MANY: Final = 250
_LARGE: Final = 20_000
# The first batches are small, since they may fill a page.
_PORTIONS: Final = (128, 128, 256, 512, 1_600)
_WITH_DOCUMENTS: Final = 400
_EVALUATED: Final = 500  # before yielding to the event loop


_BY_PATH: Final = {path: name for name, path in _KEYS.items()}


async def build_selection_condition(database: Database, given: dict[str, Any]) -> Condition:
    """Build the condition for arguments by name; `given` lacks omitted ones.

    Raises ToolError for an owner or system that no entity names.
    """
    for name, value in given.items():
        if isinstance(value, str) and len(value) > _LONGEST_NAME:
            raise ToolError(f"{name} may have {_LONGEST_NAME} characters at most.")
    related = await _build_related_conditions(database, given)
    plain = [
        Has(key, [given[name].strip().lower()]) for name, key in _KEYS.items() if name in given
    ]
    parts: list[Condition] = [*plain]
    if any(isinstance(one, Related) for one in related):
        parts = [await entity_query.probe_part(database, one) for one in plain]
    if "label" in given:
        label, equals, value = given["label"].partition("=")
        if not label.strip():
            raise ToolError("label has to be a name, or name=value, such as tier=1.")
        key = f"metadata.labels.{label.strip().lower()}"
        parts.append(Has(key, [value.strip().lower()] if equals else None))
    if "query" in given:
        try:
            parts.append(parse_predicate(given["query"]))
        except InputError as error:
            raise ToolError(f"query: {error.message}") from None
    parts += related
    if text := given.get("text", "").strip():
        parts.append(Contains(browse.TEXT_FIELDS, text.lower()))
    return await browse.look_up_text(database, AllOf(parts))


async def refuse_unknown_values(database: Database, given: Mapping[str, Any]) -> None:
    """Raise ToolError if no entity has a kind, namespace, type, lifecycle, tag, label or path.

    Call it if nothing was found: an agent that misspelled a value would report that none exist.
    """
    for name, key in _KEYS.items():
        if name in given:
            await _refuse_unknown_value(database, name, key, given[name])
    if "query" in given:
        for path, value in list_predicate_fields(given["query"]):
            await refuse_unknown_path(database, path)
            values = value.get("$in", ()) if isinstance(value, dict) else [value]
            if len(values) == 1 and isinstance(values[0], str) and path in _BY_PATH:
                await _refuse_unknown_value(database, _BY_PATH[path], path, values[0])
    if "label" not in given:
        return
    label, equals, value = given["label"].strip().lower().partition("=")
    names = await browse.list_label_choices(database, _COMPARED)
    if label.strip() not in names:
        raise _build_unknown_value_error("label", label.strip(), names)
    if equals:
        key = f"metadata.labels.{label.strip()}"
        await _refuse_unknown_value(database, f"label {label.strip()} with the value", key, value)


async def refuse_unknown_path(database: Database, path: str) -> None:
    """Raise ToolError if no entity has a field at or below a path."""
    if path in _UNLISTED or path.startswith("relations"):
        return
    if not await browse.list_key_choices(database, path, 1):
        known = await browse.list_key_choices(database, "", _COMPARED)
        raise _build_unknown_value_error("field", path, known)


async def _refuse_unknown_value(database: Database, name: str, key: str, given: str) -> None:
    value = given.strip().lower()
    if key == "kind" and value in map(str.lower, kinds.KINDS):
        return
    if key == "metadata.namespace":
        found = await browse.list_namespace_choices(database, _COMPARED)
        values = [choice.value for choice in found]
    else:
        if value in await browse.list_value_choices(database, key, value, 1):
            return
        values = await browse.list_value_choices(database, key, "", _COMPARED)
    if value not in values:
        raise _build_unknown_value_error(name, value, values)


def _build_unknown_value_error(name: str, value: str, there: list[str]) -> ToolError:
    known = suggestion(value, there) or " No entity has any."
    return ToolError(f"No entity has the {name} {value}.{known}")


async def _build_related_conditions(database: Database, given: dict[str, Any]) -> list[Condition]:
    """The conditions on owners and systems."""
    parts: list[Condition] = []
    if "owner" in given:
        owners = await find_owners_named(database, given["owner"])
        parts.append(await entity_query.build_related_condition(database, "ownedBy", owners))
    if "ownership" in given:
        if given["ownership"] == "none":
            parts.append(browse.LacksOwner())
        else:
            missing = await browse.find_missing_owners(database, _MOST_UNKNOWN)
            parts.append(await entity_query.build_related_condition(database, "ownedBy", missing))
    if "dangling" in given:
        parts.append(Dangling(given["dangling"]))
    if "system" in given:
        systems = [await _find_system_ref(database, given["system"])]
        parts.append(await entity_query.build_related_condition(database, "partOf", systems))
    return parts


async def find_owners_named(database: Database, text: str) -> list[str]:
    """The owner, and for a group all groups below it; raises ToolError for an unknown owner."""
    ref = refs.canonicalize_ref(text, kind="group")
    found = (
        await related_entities.list_groups_below(database, ref)
        if ref.startswith("group:")
        else [ref]
    )
    if len(found) > 1 or await _has_relation_target(database, "ownedBy", ref):
        return found
    person = refs.canonicalize_ref(text, kind="user")
    if person != ref and await _has_relation_target(database, "ownedBy", person):
        return [person]
    name = ref.rpartition("/")[2]
    close = await browse.find_owner_choices(database, name, _MOST_SUGGESTED)
    close = close or await stored_entities.find_similar_refs(
        database, ref.partition(":")[0], name, _MOST_SUGGESTED
    )
    there = [one.value for one in await browse.list_owner_choices(database, _COMPARED)]
    known = suggestion(name, there, close) or " No entity has an owner."
    raise ToolError(f"No entity is owned by {ref}, which is not in the catalog.{known}")


async def _find_system_ref(database: Database, text: str) -> str:
    ref = refs.canonicalize_ref(text, kind="system")
    if await _has_relation_target(database, "partOf", ref):
        return ref
    name = ref.rpartition("/")[2]
    close = await browse.find_system_choices(database, name, _MOST_SUGGESTED)
    close = close or await stored_entities.find_similar_refs(
        database, "system", name, _MOST_SUGGESTED
    )
    there = await browse.find_system_choices(database, "", _COMPARED)
    known = suggestion(name, there, close) or " There are none."
    raise ToolError(f"There is no system {ref}.{known}")


async def _has_relation_target(database: Database, type_: str, ref: str) -> bool:
    if await browse.is_relation_target(database, type_, ref):
        return True
    return await stored_entities.list_complying(database, ref, owners=False) is not None


# Fields whose absence is known to the catalog.
_FIELDS: Final = "|".join(
    sorted({"type", "lifecycle", *(field.name for some in RELATIONS.values() for field in some)})
)
_SAID: Final = re.compile(
    rf"{'|'.join(kinds.ESSENTIAL_READERS)}|relations\..+|spec\.({_FIELDS})"
    r"|metadata\.(title|description|tags|links|labels(\..+)?|annotations(\..+)?)",
    re.IGNORECASE,
)


class FactConditions(NamedTuple):
    """A compiled condition, with the data to read for it.

    `filters` are those of the sources it reads. An undecided entity that none of them lets through
    is out of scope; with `asks_unknown`, a passing one too. None: every entity is in scope.
    """

    evaluate: Evaluate
    facts: tuple[FactReference, ...]
    sources: Sequence[str]
    reads_entity: bool
    checks: CheckSet | None
    filters: Sequence[EntityFilter] | None = None
    asks_unknown: bool = False

    async def age(self, database: Database, now: int) -> ResultAge:
        """The age of the data that the condition reads."""
        if self.checks is None:
            return result_queries.read_age_of_facts(database, self.sources, now)
        checks = [one.fact for one in self.facts if one.source == CHECKS]
        read = {*self.sources, *self.checks.sources_of(checks)}
        return (await result_queries.read_result_age(database, now)).of_sources(read)

    async def states(
        self, database: Database, entities: Mapping[int, CheckedEntity], now: int
    ) -> list[int]:
        """The state of each entity, in order; `entities` are by id."""
        states = [self.evaluate(one, now) for one in entities.values()]
        open_ = {UNKNOWN, PASS} if self.asks_unknown else {UNKNOWN}
        if self.filters is None or open_.isdisjoint(states):
            return states
        asked = [id_ for id_, state in zip(entities, states, strict=True) if state in open_]
        filters = map(make_filter_condition, self.filters)
        out = set(asked) - await stored_entities.matching_ids(database, filters, asked)
        return [OUT if id_ in out else state for id_, state in zip(entities, states, strict=True)]

    @property
    def paths(self) -> list[str]:
        """The paths in the entity's document that the condition reads, in lower case."""
        of_entity = [one.fact for one in self.facts if one.source == ENTITY]
        return [fact.lower() for fact in of_entity if not _is_essential_fact(fact)]

    def values(self, entity: CheckedEntity) -> dict[str, Any]:
        """The collected values behind the answer, by fact."""
        found = {one.fact: entity.value(one) for one in self.facts if one.source in self.sources}
        return {name: shorten_value(value)[0] for name, value in found.items() if value is not None}


def build_empty_conditions(source_ids: Sequence[str], *, documents: bool) -> FactConditions:
    """A condition that every entity passes; it still reads these sources and perhaps documents."""
    return FactConditions(lambda entity, now: PASS, (), source_ids, documents, None)


def build_known_conditions(source: DataSource, asked: FactConditions) -> FactConditions:
    """The condition, but unknown for entities that the source knows nothing about."""

    def evaluate(entity: CheckedEntity, now: int) -> int:
        state = asked.evaluate(entity, now)
        latest = entity.facts.get(source.id)
        return UNKNOWN if state == PASS and not (latest and latest.facts) else state

    filters = None if source.selection is None else [source.selection]
    return asked._replace(evaluate=evaluate, filters=filters)


async def read_conditions(
    document: object, context: Context, source_id: str | None = None
) -> FactConditions:
    """Parse a condition; an omitted source is `source_id`, or else the first with the fact.

    Raises ToolError with every mistake.
    """
    mistakes: list[str] = []

    def report(path: str, message: str) -> None:
        mistakes.append(f"{path} {message}")

    # Check the size before looking up every fact in all sources.
    if not language.is_bounded(document):
        raise ToolError(f"where can have {language.MOST_CONDITIONS} conditions at most.")
    whole = _Sources(context.sources, source_id).filled(document, 0)
    rule = language.read_condition(whole, "where", report)
    known = await context.database.remembered.of(CheckCache).loaded(context.database)
    if rule is not None:
        checks = {one.id: one.compiled.check for one in known.checks if not one.is_pending}
        definition_writes.validate_rule(
            rule, "where", CheckContext(context.sources, checks), report
        )
    if mistakes or rule is None:
        told = "; ".join(mistakes[:_MOST_MISTAKES])
        raise ToolError(f"where cannot be used: {told}. {_FORM}")
    return _prepare_conditions(rule, known, context.sources)


def _prepare_conditions(
    rule: Rule, known: CheckSet, sources: Mapping[str, DataSource]
) -> FactConditions:
    facts = tuple(dict.fromkeys(language.walk_references(rule)))
    names = {one.source for one in facts}
    selections = [sources[name].selection for name in names if name in sources]
    filters = [selection for selection in selections if selection is not None]
    return FactConditions(
        compile_rule(_decide_absent(rule)).evaluate,
        facts,
        sorted(names - {ENTITY, CHECKS}),
        ENTITY in names,
        known if CHECKS in names else None,
        # The entity, checks and sources without a filter put every entity in scope.
        filters if len(filters) == len(names) else None,
        any(leaf.operator in KNOWLEDGE_OPERATORS for _, leaf in language.walk_leaves(rule)),
    )


def _decide_absent(rule: Rule) -> Rule:
    """Make a rule decide entities that have no tag, label, relation and the like."""
    match rule:
        case Every():
            return Every(tuple(map(_decide_absent, rule.conditions)))
        case Some():
            return Some(tuple(map(_decide_absent, rule.conditions)))
        case Negation():
            return Negation(_decide_absent(rule.condition))
    is_said = rule.fact.source == ENTITY and _SAID.fullmatch(rule.fact.fact)
    if not is_said or rule.operator in KNOWLEDGE_OPERATORS:
        return rule
    if rule.operator in _HOLD_FOR_NOTHING:
        return Some((FactCondition(rule.fact, "isUnknown"), rule))
    return Every((FactCondition(rule.fact, "isKnown"), rule))


async def check_candidates(
    database: Database, asked: FactConditions, rows: Sequence[FilterCandidate]
) -> list[CheckedEntity]:
    """The entities with the data that the condition reads."""
    ids = [row.id for row in rows]
    facts = await entity_evaluation.read_facts_of(database, asked.sources, ids)
    known = asked.checks
    stored = {} if known is None else await state_store.read_states_of(database, ids)
    found = []
    for row in rows:
        document = _NOTHING if row.document is None else _Decoded(row.document)
        entity = CheckedEntity(row.ref, document, facts.get(row.id, {}))
        if known is not None and row.id in stored:
            entity.states = SlotStates(known.slots, stored[row.id].padded(known.width))
        found.append(entity)
    return found


class _Decoded:
    """A document that is decoded only when needed."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = msgspec.json.decode(self._text)
        return found


class _Sources:
    """Fills in the source of each condition that omits it."""

    def __init__(self, sources: Mapping[str, DataSource], source_id: str | None) -> None:
        self._sources = sources
        self._source_id = source_id

    def filled(self, document: object, depth: int) -> object:
        """The document with all sources filled in; malformed parts stay as they are."""
        if not isinstance(document, dict) or depth > language.DEEPEST_CONDITION:
            return document
        for name in _KINDS:
            if isinstance(document.get(name), list):
                return {**document, name: [self.filled(one, depth + 1) for one in document[name]]}
        if "not" in document:
            return {**document, "not": self.filled(document["not"], depth + 1)}
        if (
            str(document.get("operator")) in TEXT_OPERATORS
            and document.get("caseSensitive") is None
        ):
            document = {**document, "caseSensitive": False}
        fact = document.get("fact")
        if "source" in document or not isinstance(fact, str):
            return document
        if self._source_id is not None:
            return {"source": self._source_id, **document}
        return self._of_any(document, fact)

    def _of_any(self, document: Mapping[str, Any], fact: str) -> object:
        """The condition on the fact of the first source that knows it."""
        owning = [{"source": ENTITY, "fact": fact}] if _is_essential_fact(fact) else []
        names = {fact, *(f"{shape.name}.{fact}" for shape in SHAPES)}
        places = sorted(place for name in names for place in self._places.get(name, ()))
        owning += [{"source": source, "fact": name} for _, _, source, name in places]
        if len(owning) > _MOST_SOURCES:
            raise ToolError(
                f'where: more than {_MOST_SOURCES} data sources have a fact "{fact[:100]}". '
                "Give its source, an id from get-data-source-discovery."
            )
        if not owning:
            raise ToolError(
                f'where: no data source has a fact "{fact[:100]}".'
                f"{suggest_facts(fact, self._sources)} Give its source too: `entity` "
                "for the entity itself, `checks` for the state of a check, or an id from "
                "get-data-source-discovery."
            )
        leaves = [{**document, **one} for one in owning]
        if len(leaves) == 1:
            return leaves[0]
        operator = document.get("operator")
        if operator in KNOWLEDGE_OPERATORS:
            return {"all" if operator == "isUnknown" else "any": leaves}
        branches = []
        for place, leaf in enumerate(leaves):
            unknown = [{**one, "operator": "isUnknown"} for one in owning[:place]]
            branches.append({"all": [*unknown, {**owning[place], "operator": "isKnown"}, leaf]})
        # If no source has a value, the last one makes the answer unknown.
        del branches[-1]["all"][-2]
        return {"any": branches}

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, int, str, str]]]:
        """Every fact by name, with the position of its source and its position in the source."""
        found: dict[str, list[tuple[int, int, str, str]]] = {}
        for nth, source in enumerate(self._sources.values()):
            for place, one in enumerate(source.schema):
                found.setdefault(one.name, []).append((nth, place, source.id, one.name))
        return found


def _is_essential_fact(fact: str) -> bool:
    return fact in kinds.ESSENTIAL_READERS or fact == kinds.OWNER_EXISTS_FACT


class Match(NamedTuple):
    """A matching entity, with the values behind the answer."""

    ref: str
    id: int
    values: dict[str, Any]


class Matches(NamedTuple):
    """Matching entities: the first ones, and the ids of all that were found.

    `unknown` counts the entities that the condition cannot decide. If not `is_whole`, only the
    first `examined` candidates were examined.
    """

    first: list[Match]
    ids: list[int]
    unknown: int
    examined: int
    is_whole: bool


class Search(NamedTuple):
    """A part of the catalog and a condition; `of_unknown` finds undecided entities instead."""

    part: Condition
    asked: FactConditions
    now: int
    of_unknown: bool = False


async def find_matches(
    database: Database, search: Search, limit: int, after: str, *, whole: bool
) -> Matches:
    """Up to `limit` matches after a reference, plus one if more follow.

    `whole` examines all candidates, however many there are.
    """
    whole = whole or await has_few_candidates(database, search.part)
    wanted = UNKNOWN if search.of_unknown else PASS
    first, ids, unknown, examined = list[Match](), list[int](), 0, 0
    async with limit_time(LONGEST_SEARCH):
        async for rows, entities, states in evaluate_candidates(database, search, after):
            for row, entity, state in zip(rows, entities, states, strict=True):
                unknown += state == UNKNOWN
                if state == wanted:
                    ids.append(row.id)
                    if len(first) <= limit:
                        values = search.asked.values(entity) if state == PASS else {}
                        first.append(Match(row.ref, row.id, values))
            examined += len(rows)
            if len(first) > limit and not whole:
                return Matches(first, ids, unknown, examined, is_whole=False)
    return Matches(first, ids, unknown, examined, is_whole=True)


async def has_few_candidates(database: Database, part: Condition) -> bool:
    """Return true if every page examines all candidates."""
    is_large = sum((await count_by_kind(database)).values()) > _LARGE
    return await entity_query.count_bounded(database, part) <= (_FEW_OF_MANY if is_large else _FEW)


async def evaluate_candidates(
    database: Database, search: Search, after: str
) -> AsyncIterator[tuple[list[FilterCandidate], list[CheckedEntity], list[int]]]:
    """Candidates after a reference, the data read for each, and its state."""
    asked, sizes = search.asked, list(_PORTIONS)
    while True:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        if asked.reads_entity:
            size = min(size, _WITH_DOCUMENTS)
        rows = await related_entities.list_filter_candidates(
            database, search.part, size, after, documents=asked.reads_entity
        )
        for start in range(0, len(rows), _EVALUATED):
            some = rows[start : start + _EVALUATED]
            entities = await check_candidates(database, asked, some)
            by_id = {row.id: one for row, one in zip(some, entities, strict=True)}
            yield some, entities, await asked.states(database, by_id, search.now)
            await asyncio.sleep(0)
        if len(rows) < size:
            return
        after = rows[-1].ref
