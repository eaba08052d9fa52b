"""Evaluation of rules and checks for an entity, in three values, and its explanation.

A rule is compiled to functions once. `all` fails if any part fails, else is unknown if any part is
unknown; `any` is its mirror; `not` swaps pass and fail. A comparison is unknown if its value is
unknown or can't be compared. Comparisons with times can change over time, and report when.

The explanation lists the facts that each comparison read, limited to the facts that the reader may
see.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from factbook import clock, user_patterns
from factbook.catalog.filters import Matcher
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.checks.rules import check_definition, language
from factbook.checks.rules.check_definition import Check, MessageTemplate
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.language import (
    CHECKS,
    ENTITY,
    PATTERN_OPERATORS,
    Every,
    FactCondition,
    FactReference,
    Negation,
    Rule,
    Some,
    Test,
)
from factbook.checks.state import FAIL, INAPPLICABLE, OUT, PASS, UNKNOWN
from factbook.datasources.custom import extraction
from factbook.errors import InputError
from factbook.facts.schema import NOT_APPLICABLE, reason_word
from factbook.integrations import catalog
from factbook.outbound.outcomes import Missing
from factbook.user_patterns import UserPattern

# About a tenth of a second.
_MOST_EXPRESSION_STEPS: Final = 100_000
# A step of an expression takes about a microsecond.
_STEPS_OF_EXPRESSION: Final = 50
# Raised for values that don't fit their operator, and objects too large for a path.
_BROKEN: Final = (TypeError, ValueError)
# Operators that read the reason for an unknown value, or the collection time.
_BEYOND_VALUES: Final = frozenset({"reasonIs", "freshWithin"})
T = TypeVar("T")
_OPPOSITE = {PASS: FAIL, FAIL: PASS}


# The state of an entity at a time.
Evaluate = Callable[[CheckedEntity, int], int]


# The time when the state may change without a write; None if never.
Due = Callable[[CheckedEntity, int], int | None]


# Raises ValueError for unreadable values.
Read = Callable[[CheckedEntity], Any]


class CompiledRule(NamedTuple):
    """A rule as functions: its evaluation, and the due times of its comparisons."""

    evaluate: Evaluate
    dues: tuple[Due, ...]


def make_fact_reader(fact: FactReference) -> Read:
    """A function that reads the fact of an entity; None if the fact is unknown.

    It raises ValueError for an object that is too large for the path expression.
    """
    if fact.source == ENTITY:
        place = fact.fact
        return lambda entity: entity.at(place)
    if fact.path is None:
        return lambda entity: entity.value(fact)
    expression = extraction.compile_expression(fact.path)

    def read(entity: CheckedEntity) -> Any:
        value = entity.value(fact)
        if value is None:
            return None
        most = min(_MOST_EXPRESSION_STEPS, entity.steps_left // _STEPS_OF_EXPRESSION)
        found, steps = expression.measured(value, most)
        entity.spend(steps * _STEPS_OF_EXPRESSION)
        if found is extraction.TOO_SLOW or found is extraction.TOO_LARGE_VALUE:
            raise ValueError(fact.path)
        return None if isinstance(found, Missing) else found

    return read


class _Deadline(NamedTuple):
    """A comparison that holds until, or from, the time of a fact."""

    time: Callable[[CheckedEntity], int | None]
    before: int
    after: int

    def evaluate(self, entity: CheckedEntity, now: int) -> int:
        time = self.time(entity)
        if time is None:
            return UNKNOWN
        return self.before if now < time else self.after

    def due(self, entity: CheckedEntity, now: int) -> int | None:
        time = self.time(entity)
        return time if time is not None and now < time else None


def _compile_deadline(
    time: Callable[[CheckedEntity], int | None], shift: int, before: int, after: int
) -> CompiledRule:
    def shifted(entity: CheckedEntity) -> int | None:
        found = time(entity)
        return None if found is None else found + shift

    found = _Deadline(shifted, before, after)
    return CompiledRule(found.evaluate, (found.due,))


def _make_moment_reader(fact: FactReference) -> Callable[[CheckedEntity], int | None]:
    read = make_fact_reader(fact)

    def time(entity: CheckedEntity) -> int | None:
        try:
            value = read(entity)
        except ValueError:
            return None
        return clock.milliseconds(value) if isinstance(value, str) else None

    return time


def _compile_older(leaf: FactCondition) -> CompiledRule:
    length = language.convert_duration(leaf.value)
    return _compile_deadline(_make_moment_reader(leaf.fact), length + 1, FAIL, PASS)


def _compile_newer(leaf: FactCondition) -> CompiledRule:
    length = language.convert_duration(leaf.value)
    return _compile_deadline(_make_moment_reader(leaf.fact), length, PASS, FAIL)


def _compile_fresh(leaf: FactCondition) -> CompiledRule:
    length, fact = language.convert_duration(leaf.value), leaf.fact
    return _compile_deadline(lambda entity: entity.time(fact), length + 1, PASS, FAIL)


def _compile_before(leaf: FactCondition) -> CompiledRule:
    if isinstance(leaf.value, dict):
        # The first time at which the fact is before the moving bound.
        shift = 1 - language.convert_duration(leaf.value)
        return _compile_deadline(_make_moment_reader(leaf.fact), shift, FAIL, PASS)
    return _compile_ordered(leaf, lambda time, wanted: time < wanted)


def _compile_after(leaf: FactCondition) -> CompiledRule:
    if isinstance(leaf.value, dict):
        shift = -language.convert_duration(leaf.value)
        return _compile_deadline(_make_moment_reader(leaf.fact), shift, PASS, FAIL)
    return _compile_ordered(leaf, lambda time, wanted: time > wanted)


def _compile_ordered(leaf: FactCondition, holds: Callable[[int, int], bool]) -> CompiledRule:
    read, value = _make_moment_reader(leaf.fact), leaf.value
    # The bound is the moment of another fact, or a fixed one.
    read_bound = _make_moment_reader(value) if isinstance(value, FactReference) else None
    fixed = None if read_bound else language.parse_moment(value)

    def evaluate(entity: CheckedEntity, now: int) -> int:
        moment = read(entity)
        bound = read_bound(entity) if read_bound else fixed
        if moment is None or bound is None:
            return UNKNOWN
        return PASS if holds(moment, bound) else FAIL

    return CompiledRule(evaluate, ())


TIME_CONDITIONS: Final[Mapping[str, Callable[[FactCondition], CompiledRule]]] = {
    "freshWithin": _compile_fresh,
    "olderThan": _compile_older,
    "newerThan": _compile_newer,
    "before": _compile_before,
    "after": _compile_after,
}


def compile_rule(rule: Rule) -> CompiledRule:
    """Compile a rule to functions."""
    match rule:
        case Every():
            parts = [compile_rule(one) for one in rule.conditions]
            evaluate = _compile_every(tuple(part.evaluate for part in parts))
            return CompiledRule(evaluate, tuple(due for part in parts for due in part.dues))
        case Some():
            parts = [compile_rule(one) for one in rule.conditions]
            evaluate = _compile_some(tuple(part.evaluate for part in parts))
            return CompiledRule(evaluate, tuple(due for part in parts for due in part.dues))
        case Negation():
            part = compile_rule(rule.condition)
            return CompiledRule(_compile_negation(part.evaluate), part.dues)
        case FactCondition():
            return _compile_leaf(rule)


def _compile_every(parts: tuple[Evaluate, ...]) -> Evaluate:
    if len(parts) == 2:
        return _compile_both(*parts)

    def evaluate(entity: CheckedEntity, now: int) -> int:
        state = PASS
        for part in parts:
            found = part(entity, now)
            if found != PASS:
                if found == FAIL:
                    return FAIL
                state = UNKNOWN
        return state

    return evaluate


def _compile_both(first: Evaluate, second: Evaluate) -> Evaluate:
    """`all` of two parts without a loop, since most rules have two."""

    def evaluate(entity: CheckedEntity, now: int) -> int:
        state = first(entity, now)
        if state == FAIL:
            return FAIL
        other = second(entity, now)
        return other if other == FAIL or state == PASS else UNKNOWN

    return evaluate


def _compile_some(parts: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(entity: CheckedEntity, now: int) -> int:
        state = FAIL
        for part in parts:
            found = part(entity, now)
            if found != FAIL:
                if found == PASS:
                    return PASS
                state = UNKNOWN
        return state

    return evaluate


def _compile_negation(part: Evaluate) -> Evaluate:
    opposite = {PASS: FAIL, FAIL: PASS, UNKNOWN: UNKNOWN}

    def evaluate(entity: CheckedEntity, now: int) -> int:
        return opposite[part(entity, now)]

    return evaluate


def _compile_leaf(leaf: FactCondition) -> CompiledRule:
    special = _SPECIAL_OPERATORS.get(leaf.operator)
    if special is not None:
        return special(leaf)
    test = leaf.test
    assert test is not None, leaf.operator
    if isinstance(leaf.value, FactReference):
        return CompiledRule(
            _compile_fact_to_fact(make_fact_reader(leaf.fact), make_fact_reader(leaf.value), test),
            (),
        )
    holds = test(leaf.value)
    if leaf.fact.source in (ENTITY, CHECKS) or leaf.fact.path is not None:
        return CompiledRule(_compile_fact(make_fact_reader(leaf.fact), holds), ())
    return CompiledRule(_compile_stored_fact(leaf.fact.source, leaf.fact.fact, holds), ())


def _compile_stored_fact(source: str, fact: str, holds: Test) -> Evaluate:
    def evaluate(entity: CheckedEntity, now: int) -> int:
        found = entity.values.get(source)
        value = None if found is None else found.get(fact)
        if value is None:
            return UNKNOWN
        try:
            return PASS if holds(value) else FAIL
        except _BROKEN:
            return UNKNOWN

    return evaluate


def _compile_fact(read: Read, holds: Test) -> Evaluate:
    def evaluate(entity: CheckedEntity, now: int) -> int:
        try:
            value = read(entity)
            if value is None:
                return UNKNOWN
            return PASS if holds(value) else FAIL
        except _BROKEN:
            return UNKNOWN

    return evaluate


def _compile_fact_to_fact(read: Read, other: Read, test: Callable[[Any], Test]) -> Evaluate:
    def evaluate(entity: CheckedEntity, now: int) -> int:
        try:
            value, wanted = read(entity), other(entity)
            if value is None or wanted is None:
                return UNKNOWN
            return PASS if test(wanted)(value) else FAIL
        except _BROKEN:
            return UNKNOWN

    return evaluate


def _compile_is_known(leaf: FactCondition) -> CompiledRule:
    read = make_fact_reader(leaf.fact)

    def evaluate(entity: CheckedEntity, now: int) -> int:
        try:
            return FAIL if read(entity) is None else PASS
        except ValueError:
            return UNKNOWN

    return CompiledRule(evaluate, ())


def _compile_matches(leaf: FactCondition) -> CompiledRule:
    """Search anywhere in a text, or in each item of a set; patterns can anchor with ^ and $."""
    read, wanted, of_set = make_fact_reader(leaf.fact), leaf.pattern, leaf.operator == "anyMatches"
    try:
        user_patterns.compile_pattern(wanted)
    except InputError:
        # A check stored by an older release.
        return CompiledRule(lambda entity, now: UNKNOWN, ())

    def evaluate(entity: CheckedEntity, now: int) -> int:
        # Compiled patterns take memory: a cache holds only the latest ones.
        pattern = user_patterns.compile_pattern(wanted)
        try:
            value = read(entity)
        except _BROKEN:
            return UNKNOWN
        if not of_set:
            return _search_text(pattern, value, entity)
        if not isinstance(value, list):
            return UNKNOWN
        states = set()
        for one in value:
            # Numbers aren't text and never match.
            found = FAIL if type(one) in (int, float) else _search_text(pattern, one, entity)
            if found == PASS:
                return PASS
            states.add(found)
        return UNKNOWN if UNKNOWN in states else FAIL

    return CompiledRule(evaluate, ())


def _search_text(pattern: UserPattern, value: Any, entity: CheckedEntity) -> int:
    if type(value) is not str or len(value) > pattern.longest:
        return UNKNOWN
    try:
        text = value.encode()
        entity.spend(pattern.size * len(text))
    except _BROKEN:
        return UNKNOWN
    return PASS if pattern.occurs(text) else FAIL


def _compile_reason_is(leaf: FactCondition) -> CompiledRule:
    fact, wanted, read = leaf.fact, leaf.value, make_fact_reader(leaf.fact)

    def evaluate(entity: CheckedEntity, now: int) -> int:
        try:
            if read(entity) is not None:
                return FAIL
        except ValueError:
            return UNKNOWN
        # The collected object has nothing at the path.
        is_collected = fact.path is not None and entity.value(fact) is not None
        reason = NOT_APPLICABLE if is_collected else reason_word(entity.reason(fact))
        return PASS if reason == wanted else FAIL

    return CompiledRule(evaluate, ())


_SPECIAL_OPERATORS: Final[dict[str, Callable[[FactCondition], CompiledRule]]] = {
    "isKnown": _compile_is_known,
    "isUnknown": lambda leaf: CompiledRule(_compile_negation(_compile_is_known(leaf).evaluate), ()),
    "reasonIs": _compile_reason_is,
    **dict.fromkeys(PATTERN_OPERATORS, _compile_matches),
    **TIME_CONDITIONS,
}


class CheckOutcome(NamedTuple):
    """The state of a check for one entity.

    `due` is the earliest time when it may change without a write, in milliseconds.
    """

    state: int
    due: int | None = None


_OUTCOMES: Final[Mapping[int, CheckOutcome]] = {
    state: CheckOutcome(state) for state in (PASS, FAIL, UNKNOWN, INAPPLICABLE)
}


class CompiledCheck:
    """A check as functions; `slot` is the position of its state in an entity's states.

    `sources` are the data sources that it reads, `checks` the other checks. `reads_entity`: it
    reads the document for more than `appliesTo`. `reads_owner`: it reads whether the owner exists.
    `reads_values_only`: only fact values decide, not reasons or times. `is_costly`: it has patterns
    or paths, whose time depends on their input; `patterns` are the usable ones, each with its fact.
    """

    __slots__ = (
        *("check", "checks", "evaluate", "has_failed", "is_costly", "patterns"),
        *("reads_entity", "reads_owner", "reads_values_only", "rule", "slot", "sources"),
    )

    def __init__(self, check: Check, slot: int) -> None:
        self.check = check
        self.slot = slot
        rules = [rule for _, rule in check.rules()]
        facts = [fact for rule in rules for fact in language.walk_references(rule)]
        leaves = [leaf for rule in rules for _, leaf in language.walk_leaves(rule)]
        self.sources = frozenset(fact.source for fact in facts) - {ENTITY, CHECKS}
        self.checks = frozenset(fact.fact for fact in facts if fact.source == CHECKS)
        self.reads_entity = any(fact.source == ENTITY for fact in facts)
        self.reads_owner = any(catalog.depends_on_owner(fact.source, fact.fact) for fact in facts)
        self.reads_values_only = not (
            self.checks
            or self.reads_entity
            or any(leaf.operator in _BEYOND_VALUES for leaf in leaves)
        )
        self.patterns = tuple(
            (leaf.fact, leaf.pattern)
            for leaf in leaves
            if leaf.operator in PATTERN_OPERATORS and not any(language.find_refused_patterns(leaf))
        )
        self.is_costly = bool(self.patterns) or any(fact.path is not None for fact in facts)
        rule = compile_rule(check.rule)
        is_plain = check.applicable_when is None and check.on_unknown == UNKNOWN and not rule.dues
        # Evaluates the rule alone, if neither conditions nor times matter; else None.
        self.rule = rule.evaluate if is_plain else None
        # Returns the outcome at a time for an entity that the check applies to.
        self.evaluate = (
            _compile_evaluation(check) if self.rule is None else _compile_outcome(self.rule)
        )
        if self.is_costly:
            self.rule = self.rule and _count_steps(self.rule)
            self.evaluate = _count_steps(self.evaluate)
        # Raised an exception before, which is logged.
        self.has_failed = False

    def applies(self, matcher: Matcher) -> bool:
        """Return true if the check applies to the entity."""
        return matcher.lets_through(self.check.applies_to)


def _count_steps(evaluate: Callable[[CheckedEntity, int], T]) -> Callable[[CheckedEntity, int], T]:
    """The same evaluation, with its steps counted separately from other checks'."""

    def counted(entity: CheckedEntity, now: int) -> T:
        entity.begin_check()
        return evaluate(entity, now)

    return counted


def _compile_evaluation(check: Check) -> Callable[[CheckedEntity, int], CheckOutcome]:
    rule = compile_rule(check.rule)
    condition_rule = check.applicable_when and compile_rule(check.applicable_when)
    dues = (*rule.dues, *(condition_rule.dues if condition_rule else ()))
    applicable = condition_rule.evaluate if condition_rule else None

    def evaluate(entity: CheckedEntity, now: int) -> CheckOutcome:
        state = PASS if applicable is None else applicable(entity, now)
        if state == PASS:
            state = rule.evaluate(entity, now)
        elif state == FAIL:
            state = INAPPLICABLE
        if state == UNKNOWN:
            state = check.on_unknown
        times = [time for due in dues if (time := due(entity, now)) is not None]
        return CheckOutcome(state, min(times)) if times else _OUTCOMES[state]

    return evaluate


def _compile_outcome(evaluate_rule: Evaluate) -> Callable[[CheckedEntity, int], CheckOutcome]:
    outcomes = _OUTCOMES

    def evaluate(entity: CheckedEntity, now: int) -> CheckOutcome:
        return outcomes[evaluate_rule(entity, now)]

    return evaluate


def order_checks(checks: Iterable[CompiledCheck]) -> list[CompiledCheck]:
    """The checks, each after the checks that it reads."""
    by_id = {one.check.id: one for one in checks}
    reads = {id_: one.checks for id_, one in by_id.items()}
    return [by_id[id_] for id_ in check_definition.order_by_reads(reads)]


class PartialEvaluation:
    """The states of checks for one entity, as far as the facts that count decide them."""

    def __init__(
        self,
        checks: Mapping[str, CompiledCheck],
        entity: CheckedEntity,
        counts: Callable[[FactReference], bool],
        now: int,
    ) -> None:
        """`counts` decides whether a fact counts; it isn't called for check states."""
        self._checks = checks
        self._entity = entity
        self._matcher = Matcher(dict(entity.document))
        self._counts = counts
        self._now = now
        self._found: dict[str, int | None] = {}

    def state(self, check_id: str) -> int | None:
        """The state of a check; None if it depends on a fact that doesn't count."""
        if check_id not in self._found:
            self._found[check_id] = None  # for cycles of checks
            one = self._checks.get(check_id)
            self._found[check_id] = UNKNOWN if one is None else self._state(one)
        return self._found[check_id]

    def _state(self, one: CompiledCheck) -> int | None:
        if not one.applies(self._matcher):
            return OUT
        check = one.check
        applicable = PASS if check.applicable_when is None else self._of(check.applicable_when)
        if applicable == FAIL:
            return INAPPLICABLE
        found = self._of(check.rule) if applicable == PASS else UNKNOWN
        if found != UNKNOWN:
            return found
        facts = (fact for _, rule in check.rules() for fact in language.walk_references(rule))
        return check.on_unknown if all(map(self.is_given, facts)) else None

    def _of(self, rule: Rule) -> int:
        """The state of a rule; comparisons of facts that don't count are unknown."""
        match rule:
            case Every():
                return self._first((FAIL, UNKNOWN), rule.conditions) or PASS
            case Some():
                return self._first((PASS, UNKNOWN), rule.conditions) or FAIL
            case Negation():
                state = self._of(rule.condition)
                return _OPPOSITE.get(state, state)
            case FactCondition():
                other = rule.value if isinstance(rule.value, FactReference) else None
                if not self.is_given(rule.fact) or (other and not self.is_given(other)):
                    return UNKNOWN
                self._entity.begin_check()
                return compile_rule(rule).evaluate(self._entity, self._now)

    def _first(self, wanted: tuple[int, int], rules: tuple[Rule, ...]) -> int | None:
        states = {self._of(rule) for rule in rules}
        return next((one for one in wanted if one in states), None)

    def is_given(self, fact: FactReference) -> bool:
        """Return true for a fact that counts, or a check state decided by such facts."""
        if fact.source == CHECKS:
            return self.state(fact.fact) is not None
        return self._counts(fact)


# The reason for impossible comparisons, for instance after a fact changed its type.
CHECK_ERROR: Final = "check-error"
_LONGEST_EXPLAINED_TEXT: Final = 500
_MOST_EXPLAINED_ITEMS: Final = 20


class Evidence(NamedTuple):
    """Evidence of a comparison: `value` and its time, `wanted`, and the reason if unknown.

    `path` is the position of the comparison in the check. `stale`: recent collections could not
    renew the value. In a comparison with another fact, `wanted` is the value of that fact.
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
    """A result with its message, its fix, and the evidence of each comparison."""

    state: int
    message: str | None
    fix_link: str | None
    fix_instructions: str | None
    because: list[Evidence]

    @property
    def stale(self) -> bool:
        """True if recent collections could not renew one of the values."""
        return any(one.stale for one in self.because)

    @property
    def reasons(self) -> list[str]:
        """The distinct reasons why comparisons are unknown."""
        return list(dict.fromkeys(one.reason for one in self.because if one.reason))


class ComparedFact(NamedTuple):
    """A comparison of a check, with its path and its evaluation."""

    path: str
    leaf: FactCondition
    evaluate: Evaluate


class Explainer:
    """Explains the results of a check for any number of entities."""

    def __init__(self, check: Check, compiled_check: CompiledCheck | None = None) -> None:
        """`compiled_check` is the same check, if compiled already."""
        self._check = check
        self._evaluate = (compiled_check or CompiledCheck(check, 0)).evaluate
        # By state, filled by the first result with that state.
        self._compared: dict[int, list[ComparedFact]] = {}
        self._messages: dict[int, MessageTemplate | None] = {}
        fix = check.fix
        self._link = check_definition.parse_link_template(fix.link) if fix and fix.link else None
        self._instructions = (
            check_definition.parse_template(fix.instructions) if fix and fix.instructions else None
        )

    def explained(self, entity: CheckedEntity, now: int) -> Explanation:
        """Explain the result for an entity that the check applies to."""
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
    """Explain the result for one entity that the check applies to."""
    return Explainer(check).explained(entity, now)


def _walk_deciding_leaves(check: Check, state: int) -> Iterator[tuple[str, FactCondition]]:
    """The comparisons behind a state: `applicableWhen`, and the rule unless inapplicable."""
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
    """The value of a fact; None if it is unknown or too large to read."""
    try:
        return make_fact_reader(fact)(entity)
    except ValueError:
        return None


def _find_unknown_reason(
    leaf: FactCondition, facts: list[FactReference], entity: CheckedEntity
) -> str:
    """The reason for an unknown comparison: of its first unknown fact, or an error."""
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
    return f"{CHECK_ERROR}: {leaf.operator} can't be applied to this value"


def _shorten_value(value: Any) -> Any:
    """A value, cut if it is long."""
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
    """Explain the result from the document and the facts that count.

    Other facts are unknown, in message templates too, and their comparisons are left out. So the
    state may differ from the full result.
    """
    metadata = {"namespace": DEFAULT_NAMESPACE, **document["metadata"]}
    facts = {}
    for source, latest in entity.facts.items():
        counting = {
            name: value
            for name, value in latest.facts.items()
            if counts(FactReference(source, name))
        }
        facts[source] = latest._replace(facts=counting, reasons={})
    states = {
        id_: entity.states[id_] for id_ in entity.states if counts(FactReference(CHECKS, id_))
    }
    narrowed = CheckedEntity(entity.ref, {**document, "metadata": metadata}, facts, states)
    explanation = explain_check(check, narrowed, now)
    because = [
        evidence
        for evidence in explanation.because
        if counts(evidence.leaf.fact)
        and (not isinstance(evidence.leaf.value, FactReference) or counts(evidence.leaf.value))
    ]
    return explanation._replace(because=because)
