"""Which rules of a project count for its default branch, and what they come to."""

from typing import Any

import pytest

from factbook.integrations.gitlab.facts import matches_branch
from tests.integrations.gitlab.asking import differences, full, started

PROTECTION = "codehost.branchProtection"
REVIEW = "codehost.codeReview"

UNPROTECTED = {
    f"{PROTECTION}.enabled": False,
    f"{PROTECTION}.allowDeletions": True,
    f"{PROTECTION}.allowForcePushes": True,
    f"{REVIEW}.requireCodeOwnerReviews": False,
    "security.branchProtection": False,
}


async def test_rules_count_by_name_or_wildcard(subtests: pytest.Subtests) -> None:
    cases: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
        "none": ([], UNPROTECTED),
        "of others": ([{"name": "release/*"}], UNPROTECTED),
        "case": ([{"name": "Main"}], UNPROTECTED),
        "wildcard": ([{"name": "m*n"}], {f"{REVIEW}.requireCodeOwnerReviews": False}),
        "one allows it": (
            [{"name": "*", "allow_force_push": True}, {"code_owner_approval_required": True}],
            {f"{PROTECTION}.allowForcePushes": True},
        ),
        "those of groups win": (
            [
                {"name": "*", "allow_force_push": True},
                {"inherited": True, "code_owner_approval_required": True},
            ],
            {},
        ),
    }
    for case, (rules, expected) in cases.items():
        with subtests.test(case):
            project = full()
            project.protected = rules
            _, collector = started(project)
            assert differences(await collector.one()) == (expected, {})


def test_a_star_stands_for_any_text(subtests: pytest.Subtests) -> None:
    cases = [
        ("main", "main", True),
        ("main", "mainly", False),
        ("*", "main", True),
        ("*-stable", "1-stable", True),
        ("*-stable", "stable", False),
        ("a*a", "a", False),
        ("a*b*c", "axxbyybzc", True),
        ("a*b*c", "acb", False),
        ("release/*", "release/1/2", True),
        ("m.in", "main", False),
        ("*a" * 40, "a" * 200 + "b", False),
    ]
    for pattern, name, expected in cases:
        with subtests.test(pattern=pattern, name=name):
            assert matches_branch(pattern, name) is expected


@pytest.mark.parametrize(
    ("settings", "linear", "strict"),
    [
        ({"merge_method": "merge"}, False, False),
        ({"merge_method": "rebase_merge"}, False, True),
        ({"merge_method": "merge", "merge_trains_enabled": True}, False, True),
        ({"only_allow_merge_if_pipeline_succeeds": False}, True, False),
    ],
)
async def test_linear_history_and_strict_checks_follow_the_merge_method(
    settings: dict[str, Any], linear: bool, strict: bool
) -> None:
    project = full()
    project.settings = {**project.settings, **settings}
    _, collector = started(project)
    values = (await collector.one()).values
    assert values[f"{PROTECTION}.requiredLinearHistory"] is linear
    assert values[f"{REVIEW}.strictRequiredStatusChecks"] is strict


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"applies_to_all_protected_branches": True, "protected_branches": []}, 3),
        ({"protected_branches": [{"name": "ma*"}]}, 3),
        ({"protected_branches": [{"name": "other"}]}, 0),
        ({"protected_branches": [], "rule_type": "report_approver"}, 0),
    ],
)
async def test_approvals_are_those_of_rules_for_the_default_branch(
    rule: dict[str, Any], expected: int
) -> None:
    project = full()
    project.approval_rules = [{"approvals_required": 3, **rule}]
    _, collector = started(project)
    values = (await collector.one()).values
    assert values[f"{REVIEW}.requiredApprovingReviewCount"] == expected


@pytest.mark.parametrize(
    ("rule", "values", "reasons"),
    [
        (None, {f"{PROTECTION}.requiredSignatures": False}, {}),
        ({"reject_unsigned_commits": None}, {f"{PROTECTION}.requiredSignatures": False}, {}),
        ({}, {}, {f"{PROTECTION}.requiredSignatures": "feature-off"}),
    ],
)
async def test_signatures_are_demanded_by_a_push_rule(
    rule: dict[str, Any] | None, values: dict[str, Any], reasons: dict[str, str]
) -> None:
    project = full()
    project.push_rule = rule
    _, collector = started(project)
    assert differences(await collector.one()) == (values, reasons)
