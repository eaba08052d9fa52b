"""A rule as an English sentence."""

from collections.abc import Sequence
from typing import Any, Final

from factbook.checks.rules.condition import Every, FactCondition, Negation, Rule, Some
from factbook.checks.rules.fact_reference import CHECKS, ENTITY, FactReference
from factbook.checks.rules.operators import OPERATORS
from factbook.checks.rules.wanted_values import ValueForm

_MOST_ITEMS: Final = 10
_MOST_PARTS: Final = 20
# Words of a comparison with a time that moves on.
_FROM_NOW: Final = {"before": "is less than {} from now", "after": "is more than {} from now"}


def of(rule: Rule) -> str:
    """The rule in words: `issues.open (github) is less than 10, and …`."""
    text = _words(rule)
    return f"{text[0].upper()}{text[1:]}." if text[:4] in ("The ", "the ") else f"{text}."


def _words(rule: Rule) -> str:
    match rule:
        case FactCondition():
            return _comparison(rule)
        case Negation():
            return f"not ({_words(rule.condition)})"
        case Every():
            return _joined([_inner(one) for one in rule.conditions], "and")
        case Some():
            return _joined([_inner(one) for one in rule.conditions], "or")


def _inner(rule: Rule) -> str:
    is_group = isinstance(rule, Every | Some) and len(rule.conditions) > 1
    return f"({_words(rule)})" if is_group else _words(rule)


def _comparison(leaf: FactCondition) -> str:
    words = OPERATORS[leaf.operator].words
    if isinstance(leaf.value, dict) and leaf.operator in _FROM_NOW:
        words = _FROM_NOW[leaf.operator]
    case = " in any case" if leaf.ignores_case else ""
    return f"{_fact(leaf.fact)} {words.format(_wanted(leaf))}{case}"


def _fact(fact: FactReference) -> str:
    if fact.source == ENTITY:
        return f"{fact.fact} of the entity"
    if fact.source == CHECKS:
        return f"the check {fact.fact}"
    inside = f" at {fact.path}" if fact.path else ""
    return f"{fact.fact} ({fact.source}){inside}"


def _wanted(leaf: FactCondition) -> str:
    value, form = leaf.value, OPERATORS[leaf.operator].form
    if isinstance(value, FactReference):
        return _fact(value)
    if isinstance(value, dict):
        return _joined([_counted(count, unit) for unit, count in value.items()], "and")
    if isinstance(value, list):
        shown = [_quoted(one) for one in value[:_MOST_ITEMS]]
        more = len(value) - len(shown)
        return _joined([*shown, f"{more} more"] if more else shown, "or")
    plain = (
        form in (ValueForm.TIME, ValueForm.VERSION, ValueForm.REASON) or leaf.fact.source == CHECKS
    )
    return str(value) if plain else _quoted(value)


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit.removesuffix('s') if count == 1 else unit}"


def _quoted(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _joined(parts: Sequence[str], word: str) -> str:
    """The parts with commas and a word before the last; of many, only the first."""
    if len(parts) > _MOST_PARTS:
        parts = [*parts[:_MOST_PARTS], f"{len(parts) - _MOST_PARTS} more"]
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        return f"{parts[0]} {word} {parts[1]}"
    return f"{', '.join(parts[:-1])}, {word} {parts[-1]}"
