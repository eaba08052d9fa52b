"""Checks and entities for tests of their evaluation."""

from collections.abc import Mapping
from typing import Any

from factbook.checks.rules.check_definition import Check, parse_check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.rule_evaluation import CheckOutcome, CompiledCheck
from factbook.errors import InvalidItemsError
from factbook.facts.freshness import Latest

NOW = 1_764_000_000_000


def check(rule: object, **members: Any) -> Check:
    """A check with this rule."""
    return parse_check({"id": "one", "title": "One", "rule": rule} | members)


def entity(
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    reasons: Mapping[str, Mapping[str, str]] | None = None,
    document: Mapping[str, Any] | None = None,
    states: Mapping[str, int] | None = None,
    kept: Mapping[str, Mapping[str, int]] | None = None,
) -> CheckedEntity:
    """An entity whose facts of each source were collected at NOW."""
    facts, reasons, kept = facts or {}, reasons or {}, kept or {}
    latest = {
        source: Latest(
            dict(facts.get(source, {})),
            dict(reasons.get(source, {})),
            "1.0.0",
            NOW,
            kept.get(source, {}),
        )
        for source in [*facts, *(reasons.keys() - facts.keys())]
    }
    return CheckedEntity("component:default/one", document or {}, latest, states)


def evaluated(one: Check, subject: CheckedEntity, now: int = NOW) -> CheckOutcome:
    """The outcome of a check for an entity."""
    return CompiledCheck(one, 1).evaluate(subject, now)


def problems(rule: object, **members: Any) -> dict[str, str]:
    """The mistakes for which a check is refused, by their path; none if it is taken."""
    try:
        check(rule, **members)
    except InvalidItemsError as error:
        return {one["path"]: one["message"] for one in error.details["problems"]}
    return {}
