"""The explanation of a result: what each comparison of a check saw, and what is said about it.

For readers who may see only some of the facts, the explanation is narrowed to those.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from factbook import user_patterns
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.checks.rules import check_definition, language
from factbook.checks.rules.check_definition import Check, MessageTemplate
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.language import CHECKS, FactCondition, FactReference, Rule
from factbook.checks.rules.rule_evaluation import (
    CompiledCheck,
    Evaluate,
    compile_rule,
    make_fact_reader,
)
from factbook.checks.state import FAIL, INAPPLICABLE, PASS, UNKNOWN
from factbook.facts.freshness import Latest
from factbook.facts.schema import NOT_APPLICABLE

# The reason of a comparison that cannot be made, for instance since a fact has another type now.
CHECK_ERROR: Final = "check-error"
_LONGEST_EXPLAINED_TEXT: Final = 500
_MOST_EXPLAINED_ITEMS: Final = 20


class Evidence(NamedTuple):
    """Evidence of a comparison: `value` and its time, `wanted`, and the reason if it is unknown.

    `path` is the place of the comparison in the check. `stale` is true for a value that the last
    collections could not renew. If the fact is compared with another, `wanted` is its value.
    """

    path: str
    leaf: FactCondition
    state: int
    value: Any | None
    wanted: Any | None
    collected_at: int | None
    reason: str | None
    stale: bool


class Explanation(NamedTuple):
    """A result with its message, the way to make it pass, and what each comparison saw."""

    state: int
    message: str | None
    fix_link: str | None
    fix_instructions: str | None
    because: list[Evidence]

    @property
    def stale(self) -> bool:
        """True if a value was used that the last collections could not renew."""
        return any(one.stale for one in self.because)

    @property
    def reasons(self) -> list[str]:
        """The distinct reasons for which comparisons are unknown."""
        return list(dict.fromkeys(one.reason for one in self.because if one.reason))


class ComparedFact(NamedTuple):
    """A comparison of a check, with its place and its evaluation."""

    path: str
    leaf: FactCondition
    evaluate: Evaluate


class Explainer:
    """A check ready to explain its results, for any number of entities."""

    def __init__(self, check: Check, compiled_check: CompiledCheck | None = None) -> None:
        """`compiled_check` is the same check, where it is known already."""
        self._check = check
        self._evaluate = (compiled_check or CompiledCheck(check, 0)).evaluate
        # By state, as the first result with it needs them.
        self._compared: dict[int, list[ComparedFact]] = {}
        self._messages: dict[int, MessageTemplate | None] = {}
        fix = check.fix
        self._link = check_definition.parse_link_template(fix.link) if fix and fix.link else None
        self._instructions = (
            check_definition.parse_template(fix.instructions) if fix and fix.instructions else None
        )

    def explained(self, entity: CheckedEntity, now: int) -> Explanation:
        """The result for an entity that the check applies to, explained."""
        state = self._evaluate(entity, now).state
        if state not in self._compared:
            self._prepare(state)
        message = self._messages[state]
        is_to_fix = state in (FAIL, UNKNOWN)
        return Explanation(
            state,
            message.text(entity) if message else None,
            self._link.link(entity) if self._link and is_to_fix else None,
            self._instructions.text(entity) if self._instructions and is_to_fix else None,
            [_collect_evidence(one, entity, now) for one in self._compared[state]],
        )

    def _prepare(self, state: int) -> None:
        messages = self._check.messages
        text = {PASS: messages.passing, FAIL: messages.failing, UNKNOWN: messages.unknown}.get(
            state
        )
        self._messages[state] = check_definition.parse_template(text) if text else None
        self._compared[state] = [
            ComparedFact(path, leaf, compile_rule(leaf).evaluate)
            for path, leaf in _walk_deciding_leaves(self._check, state)
        ]


def explain_check(check: Check, entity: CheckedEntity, now: int) -> Explanation:
    """The result for one entity that the check applies to, explained."""
    return Explainer(check).explained(entity, now)


def _walk_deciding_leaves(check: Check, state: int) -> Iterator[tuple[str, FactCondition]]:
    """The comparisons that the state rests on: those of `applicableWhen` too, where it decided."""
    rules: list[tuple[str, Rule]] = [] if state == INAPPLICABLE else [("rule", check.rule)]
    if check.applicable_when is not None:
        rules.insert(0, ("applicableWhen", check.applicable_when))
    for path, rule in rules:
        yield from language.walk_leaves(rule, path)


def _collect_evidence(compared: ComparedFact, entity: CheckedEntity, now: int) -> Evidence:
    path, leaf, evaluate = compared
    entity.begin_check()
    state = evaluate(entity, now)
    value = _read_compared_fact(leaf.fact, entity)
    other = leaf.value if isinstance(leaf.value, FactReference) else None
    wanted = leaf.value if other is None else _read_compared_fact(other, entity)
    asks_why = state == UNKNOWN or (value is None and leaf.operator in language.KNOWLEDGE_OPERATORS)
    facts = [leaf.fact] if other is None else [leaf.fact, other]
    return Evidence(
        path,
        leaf,
        state,
        _shorten_value(value),
        _shorten_value(wanted),
        entity.time(leaf.fact),
        _find_unknown_reason(leaf, facts, entity) if asks_why else None,
        any(map(entity.is_kept, facts)),
    )


def _read_compared_fact(fact: FactReference, entity: CheckedEntity) -> Any | None:
    """The value of a fact; None if it is unknown, or too large to be read."""
    try:
        return make_fact_reader(fact)(entity)
    except ValueError:
        return None


def _find_unknown_reason(
    leaf: FactCondition, facts: list[FactReference], entity: CheckedEntity
) -> str:
    """The reason for which a comparison is unknown: of the first fact that is, or an error."""
    for _, refusal in language.find_refused_patterns(leaf):
        return f"{CHECK_ERROR}: the pattern {_shorten_value(leaf.value)} {refusal}"
    for fact in facts:
        if entity.value(fact) is None:
            return entity.reason(fact)
        try:
            found = make_fact_reader(fact)(entity)
        except ValueError:
            return f"{CHECK_ERROR}: {fact.fact} is too large for {fact.path}"
        if found is None:
            return f"{NOT_APPLICABLE}: {fact.fact} has nothing at {fact.path}"
    value = (
        make_fact_reader(leaf.fact)(entity) if leaf.operator in language.PATTERN_OPERATORS else None
    )
    texts = value if isinstance(value, list) else [value]
    if texts and all(isinstance(one, str) for one in texts):
        longest = user_patterns.compile_pattern(leaf.pattern).longest
        if (size := max(map(len, texts))) > longest:
            return (
                f"{CHECK_ERROR}: {leaf.fact.fact} has {size:,} characters, and this pattern "
                f"is tried with {longest:,} at most"
            )
        return (
            f"{CHECK_ERROR}: the patterns of this check take too long for {leaf.fact.fact}; "
            "write fewer or smaller ones"
        )
    return f"{CHECK_ERROR}: {leaf.operator} cannot be asked of this value"


def _shorten_value(value: Any) -> Any:
    """A value as it is, or its beginning if it is long."""
    if isinstance(value, str) and len(value) > _LONGEST_EXPLAINED_TEXT:
        return f"{value[:_LONGEST_EXPLAINED_TEXT]}…"
    if isinstance(value, list) and len(value) > _MOST_EXPLAINED_ITEMS:
        return [*map(_shorten_value, value[:_MOST_EXPLAINED_ITEMS]), f"… of {len(value)}"]
    if isinstance(value, dict | list):
        text = msgspec.json.encode(value).decode()
        return (
            value if len(text) <= _LONGEST_EXPLAINED_TEXT else f"{text[:_LONGEST_EXPLAINED_TEXT]}…"
        )
    return value


Counts = Callable[[FactReference], bool]


def explain_narrowed(
    check: Check, entity: CheckedEntity, document: Mapping[str, Any], counts: Counts, now: int
) -> Explanation:
    """The result by what the document says and by the facts that count.

    The others are unknown, also in its texts, and comparisons of them are left out. Without them
    the state may be another one.
    """
    metadata = {"namespace": DEFAULT_NAMESPACE, **document["metadata"]}
    facts = {
        source: _narrow_latest(source, latest, counts) for source, latest in entity.facts.items()
    }
    states = {
        id_: entity.states[id_] for id_ in entity.states if counts(FactReference(CHECKS, id_))
    }
    known = CheckedEntity(entity.ref, {**document, "metadata": metadata}, facts, states)
    found = explain_check(check, known, now)
    return found._replace(because=[one for one in found.because if _counts_whole(one, counts)])


def _narrow_latest(source: str, latest: Latest, counts: Counts) -> Latest:
    facts = {
        name: value for name, value in latest.facts.items() if counts(FactReference(source, name))
    }
    return latest._replace(facts=facts, reasons={})


def _counts_whole(one: Evidence, counts: Counts) -> bool:
    other = one.leaf.value
    facts = [one.leaf.fact, *([other] if isinstance(other, FactReference) else [])]
    return all(map(counts, facts))
