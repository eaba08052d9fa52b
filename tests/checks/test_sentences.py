from typing import Any

import pytest

from factbook.checks.rules import language
from factbook.checks.rules.language import OPERATORS
from tests.checks.making import check
from tests.checks.sources import leaf
from tests.checks.test_operators import WANTED

PROTECTED = leaf("protected", "equal", True)


def test_a_rule_is_told_as_a_sentence(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, str]] = [
        (PROTECTED, "protected (code) is true."),
        (
            {"all": [PROTECTED, leaf("approvals", "greaterThanInclusive", 1)]},
            "protected (code) is true and approvals (code) is at least 1.",
        ),
        (
            {"any": [PROTECTED, {"all": [PROTECTED, PROTECTED]}, {"not": PROTECTED}]},
            "protected (code) is true, (protected (code) is true and protected (code) is true), "
            "or not (protected (code) is true).",
        ),
        (leaf("language", "in", ["go", "c"]), 'language (code) is one of "go" or "c".'),
        (
            {**leaf("language", "in", ["go", "c"]), "caseSensitive": False},
            'language (code) is one of "go" or "c" in any case.',
        ),
        (leaf("languages", "anyMatches", "^ja"), 'languages (code) has one that matches "^ja".'),
        (leaf("languages", "isEmpty"), "languages (code) is empty."),
        (leaf("pushedAt", "olderThan", {"days": 1}), "pushedAt (code) is more than 1 day ago."),
        (
            leaf("createdAt", "after", {"months": 2}),
            "createdAt (code) is more than 2 months from now.",
        ),
        (leaf("createdAt", "before", "2026-01-01"), "createdAt (code) is before 2026-01-01."),
        (
            leaf("age", "lessThan", {"source": "code", "fact": "longest"}),
            "age (code) is less than longest (code).",
        ),
        (
            leaf("manifest", "equal", "esm", path="type"),
            'manifest (code) at type is "esm".',
        ),
        (
            {"source": "entity", "fact": "spec.type", "operator": "isKnown"},
            "spec.type of the entity is known.",
        ),
        (
            {"source": "checks", "fact": "two", "operator": "equal", "value": "pass"},
            "The check two is pass.",
        ),
    ]
    for rule, text in cases:
        with subtests.test(rule=rule):
            assert language.describe_rule(check(rule).rule) == text


def test_every_operator_has_words(subtests: pytest.Subtests) -> None:
    for operator in OPERATORS:
        with subtests.test(operator=operator):
            wanted = WANTED.get(OPERATORS[operator].form.name)

            found = language.describe_rule(check(leaf("language", operator, wanted)).rule)

            assert found.startswith("language (code) ")
            assert "{" not in found


def test_a_long_rule_is_cut() -> None:
    rule = {"all": [leaf("language", "in", ["a" * 3] * 100)] * 200}

    assert len(language.describe_rule(check(rule).rule)) < 4_000
