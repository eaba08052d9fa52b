"""Conditions on facts and checks in an argument: read, and asked of many entities at a time.

They are those of checks (`checks.rules.condition`), with their three values. A condition may leave
its source out: then the fact is that of the first source that knows it, as in the metric tools.
Unlike in checks, text is compared in any case unless `caseSensitive` is true.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog import essentials
from factbook.catalog.kinds import RELATIONS
from factbook.catalog.store import collectable
from factbook.catalog.store.summaries import FilterCandidate
from factbook.checks.definitions import validation
from factbook.checks.definitions.validation import CheckContext
from factbook.checks.evaluation.compiled_rule import compiled_rule
from factbook.checks.evaluation.rule_functions import Evaluate
from factbook.checks.maintenance import latest_facts
from factbook.checks.maintenance.check_set import CheckCache, CheckSet
from factbook.checks.maintenance.state_update import SlotStates
from factbook.checks.results import result_age
from factbook.checks.results.result_age import ResultAge
from factbook.checks.rules import condition
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.condition import Every, FactCondition, Negation, Rule, Some
from factbook.checks.rules.fact_reference import CHECKS, ENTITY, FactReference
from factbook.checks.rules.operators import KNOWLEDGE, OF_TEXT
from factbook.checks.state import OUT, PASS, UNKNOWN
from factbook.checks.states import state_store
from factbook.errors import ToolError
from factbook.facts import entity_filter
from factbook.facts.datasource import DataSource
from factbook.facts.entity_filter import EntityFilter
from factbook.facts.shapes import SHAPES
from factbook.storage import Database
from factbook.tools.pages import shortened
from factbook.tools.sources import near_facts
from factbook.tools.tool import Context

_FORM: Final = (
    'Write {"fact": "branchProtection.enabled", "operator": "equal", "value": false}, or all, any '
    "or not of such."
)
_TOLD: Final = 5  # mistakes
# Of a fact without a source: the conditions that it stands for grow with the square of them.
_MOST_SOURCES: Final = 10
_NOTHING: Final[Mapping[str, Any]] = {}
_KINDS: Final = ("all", "any")
# Fields of which the catalog knows that an entity has none.
_FIELDS: Final = "|".join(
    sorted({"type", "lifecycle", *(field.name for some in RELATIONS.values() for field in some)})
)
_SAID: Final = re.compile(
    rf"{'|'.join(essentials.READERS)}|relations\..+|spec\.({_FIELDS})"
    r"|metadata\.(title|description|tags|links|labels(\..+)?|annotations(\..+)?)",
    re.IGNORECASE,
)
# Comparisons that hold for nothing, as for an empty list.
_HOLD_FOR_NOTHING: Final = frozenset(
    {"notEqual", "notIn", "doesNotContain", "isEmpty", "sizeAtMost"}
)


class FactConditions(NamedTuple):
    """A condition, compiled, with what has to be read for it.

    It isn't about entities that none of `filters` lets through, those of the sources that it reads,
    unless it is decided without asking what is unknown. None: it is about every entity.
    """

    evaluate: Evaluate
    facts: tuple[FactReference, ...]
    sources: Sequence[str]
    reads_entity: bool
    checks: CheckSet | None
    filters: Sequence[EntityFilter] | None = None
    asks_unknown: bool = False

    async def age(self, database: Database, now: int) -> ResultAge:
        """The age of what the condition tells entities apart by."""
        if self.checks is None:
            return result_age.of_facts(database, self.sources, now)
        checks = [one.fact for one in self.facts if one.source == CHECKS]
        read = {*self.sources, *self.checks.sources_of(checks)}
        return (await result_age.current(database, now)).of_sources(read)

    async def states(
        self, database: Database, entities: Mapping[int, CheckedEntity], now: int
    ) -> list[int]:
        """The state of each of these entities, which are by id."""
        states = [self.evaluate(one, now) for one in entities.values()]
        open_ = {UNKNOWN, PASS} if self.asks_unknown else {UNKNOWN}
        if self.filters is None or open_.isdisjoint(states):
            return states
        asked = [id_ for id_, state in zip(entities, states, strict=True) if state in open_]
        filters = map(entity_filter.where, self.filters)
        out = set(asked) - await collectable.matching(database, filters, asked)
        return [OUT if id_ in out else state for id_, state in zip(entities, states, strict=True)]

    @property
    def paths(self) -> list[str]:
        """The paths of the entity's document that it reads, in lower case."""
        of_entity = [one.fact for one in self.facts if one.source == ENTITY]
        return [fact.lower() for fact in of_entity if not _is_essential(fact)]

    def values(self, entity: CheckedEntity) -> dict[str, Any]:
        """The collected values that the answer rests on, by fact."""
        found = {one.fact: entity.value(one) for one in self.facts if one.source in self.sources}
        return {name: shortened(value)[0] for name, value in found.items() if value is not None}


def nothing(source_ids: Sequence[str], *, documents: bool) -> FactConditions:
    """No condition; these sources and perhaps documents are read all the same."""
    return FactConditions(lambda entity, now: PASS, (), source_ids, documents, None)


def known_of(source: DataSource, asked: FactConditions) -> FactConditions:
    """The condition for entities of which the source knows something; unknown of its others."""

    def evaluate(entity: CheckedEntity, now: int) -> int:
        state = asked.evaluate(entity, now)
        latest = entity.facts.get(source.id)
        return UNKNOWN if state == PASS and not (latest and latest.facts) else state

    filters = None if source.selection is None else [source.selection]
    return asked._replace(evaluate=evaluate, filters=filters)


async def read(document: object, context: Context, source_id: str | None = None) -> FactConditions:
    """The condition; a source that is left out is `source_id`, or whichever has the fact.

    Raises ToolError with every mistake.
    """
    mistakes: list[str] = []

    def report(path: str, message: str) -> None:
        mistakes.append(f"{path} {message}")

    # Before each is looked for in all sources.
    if not condition.is_bounded(document):
        raise ToolError(f"where can have {condition.MOST_CONDITIONS} conditions at most.")
    whole = _Sources(context.sources, source_id).filled(document, 0)
    rule = condition.read(whole, "where", report)
    known = await context.database.remembered.of(CheckCache).loaded(context.database)
    if rule is not None:
        checks = {one.id: one.compiled.check for one in known.checks if not one.is_pending}
        validation.check_rule(rule, "where", CheckContext(context.sources, checks), report)
    if mistakes or rule is None:
        told = "; ".join(mistakes[:_TOLD])
        raise ToolError(f"where cannot be used: {told}. {_FORM}")
    return _prepared(rule, known, context.sources)


def _prepared(rule: Rule, known: CheckSet, sources: Mapping[str, DataSource]) -> FactConditions:
    facts = tuple(dict.fromkeys(condition.references(rule)))
    names = {one.source for one in facts}
    return FactConditions(
        compiled_rule(_deciding_absent(rule)).evaluate,
        facts,
        sorted(names - {ENTITY, CHECKS}),
        ENTITY in names,
        known if CHECKS in names else None,
        _filters([sources[name] for name in names if name in sources], len(names)),
        any(leaf.operator in KNOWLEDGE for _, leaf in condition.leaves(rule)),
    )


def _deciding_absent(rule: Rule) -> Rule:
    """The rule, which is decided also where an entity has no tag, label, relation and the like."""
    match rule:
        case Every():
            return Every(tuple(map(_deciding_absent, rule.conditions)))
        case Some():
            return Some(tuple(map(_deciding_absent, rule.conditions)))
        case Negation():
            return Negation(_deciding_absent(rule.condition))
    is_said = rule.fact.source == ENTITY and _SAID.fullmatch(rule.fact.fact)
    if not is_said or rule.operator in KNOWLEDGE:
        return rule
    if rule.operator in _HOLD_FOR_NOTHING:
        return Some((FactCondition(rule.fact, "isUnknown"), rule))
    return Every((FactCondition(rule.fact, "isKnown"), rule))


def _filters(sources: Sequence[DataSource], number: int) -> list[EntityFilter] | None:
    """The filters of so many sources; None if one has none, or isn't a source that collects."""
    found = [one.selection for one in sources if one.selection is not None]
    return found if len(found) == number else None


async def checked(
    database: Database, asked: FactConditions, rows: Sequence[FilterCandidate]
) -> list[CheckedEntity]:
    """The entities with what the condition reads of them."""
    ids = [row.id for row in rows]
    facts = await latest_facts.of_entities(database, asked.sources, ids)
    known = asked.checks
    stored = {} if known is None else await state_store.of_entities(database, ids)
    found = []
    for row in rows:
        document = _NOTHING if row.document is None else _Decoded(row.document)
        entity = CheckedEntity(row.ref, document, facts.get(row.id, {}))
        if known is not None and row.id in stored:
            entity.states = SlotStates(known.slots, stored[row.id].padded(known.width))
        found.append(entity)
    return found


class _Decoded:
    """A document that is decoded when something reads it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = msgspec.json.decode(self._text)
        return found


class _Sources:
    """Names the source of each condition that leaves it out."""

    def __init__(self, sources: Mapping[str, DataSource], source_id: str | None) -> None:
        self._sources = sources
        self._source_id = source_id

    def filled(self, document: object, depth: int) -> object:
        """The document with all sources named; what is not well-formed is left as it is."""
        if not isinstance(document, dict) or depth > condition.DEEPEST:
            return document
        for name in _KINDS:
            if isinstance(document.get(name), list):
                return {**document, name: [self.filled(one, depth + 1) for one in document[name]]}
        if "not" in document:
            return {**document, "not": self.filled(document["not"], depth + 1)}
        if str(document.get("operator")) in OF_TEXT and document.get("caseSensitive") is None:
            document = {**document, "caseSensitive": False}
        fact = document.get("fact")
        if "source" in document or not isinstance(fact, str):
            return document
        if self._source_id is not None:
            return {"source": self._source_id, **document}
        return self._of_any(document, fact)

    def _of_any(self, document: Mapping[str, Any], fact: str) -> object:
        """The condition on the fact of the first source that knows it."""
        owning = self._having(fact)
        if len(owning) > _MOST_SOURCES:
            raise ToolError(
                f'where: more than {_MOST_SOURCES} data sources have a fact "{fact[:100]}". '
                "Give its source, an id from get-data-source-discovery."
            )
        if not owning:
            raise ToolError(
                f'where: no data source has a fact "{fact[:100]}".'
                f"{near_facts(fact, self._sources)} Give its source too: `entity` "
                "for the entity itself, `checks` for the state of a check, or an id from "
                "get-data-source-discovery."
            )
        leaves = [{**document, **one} for one in owning]
        if len(leaves) == 1:
            return leaves[0]
        operator = document.get("operator")
        if operator in KNOWLEDGE:
            return {"all" if operator == "isUnknown" else "any": leaves}
        branches = []
        for place, leaf in enumerate(leaves):
            unknown = [{**one, "operator": "isUnknown"} for one in owning[:place]]
            branches.append({"all": [*unknown, {**owning[place], "operator": "isKnown"}, leaf]})
        # Where none knows it, the answer is unknown, as that of the last one is.
        del branches[-1]["all"][-2]
        return {"any": branches}

    def _having(self, fact: str) -> list[dict[str, str]]:
        found = [{"source": ENTITY, "fact": fact}] if _is_essential(fact) else []
        names = {fact, *(f"{shape.name}.{fact}" for shape in SHAPES)}
        places = sorted(place for name in names for place in self._places.get(name, ()))
        return [*found, *({"source": source, "fact": name} for _, _, source, name in places)]

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, int, str, str]]]:
        """Every fact by its name, with the places of its source and of itself in there."""
        found: dict[str, list[tuple[int, int, str, str]]] = {}
        for nth, source in enumerate(self._sources.values()):
            for place, one in enumerate(source.schema):
                found.setdefault(one.name, []).append((nth, place, source.id, one.name))
        return found


def _is_essential(fact: str) -> bool:
    return fact in essentials.READERS or fact == essentials.OWNER_EXISTS
