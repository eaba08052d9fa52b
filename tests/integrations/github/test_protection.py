"""Classic rules and rulesets merged: the strictest wins, and what nobody told stays unknown."""

from dataclasses import fields, replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.integrations.github.api import BranchRule, Id, Parameters, RuleNode
from factbook.integrations.github.facts import (
    NO_RULE,
    UNREADABLE,
    Classic,
    Merged,
    RestRule,
    convert_graphql_rule,
    convert_rest_rule,
    merge_protection,
)

TYPES = (
    "CREATION",
    "DELETION",
    "NON_FAST_FORWARD",
    "PULL_REQUEST",
    "REQUIRED_LINEAR_HISTORY",
    "REQUIRED_SIGNATURES",
    "REQUIRED_STATUS_CHECKS",
    "UPDATE",
)
# A rule may only loosen these when nobody has them; all others only tighten.
LOOSE = {"allowDeletions", "allowForcePushes"}

parameters = st.builds(
    Parameters,
    dismiss_stale_reviews_on_push=st.booleans(),
    require_code_owner_review=st.booleans(),
    require_last_push_approval=st.booleans(),
    required_approving_review_count=st.integers(0, 6),
    strict_required_status_checks_policy=st.booleans(),
    required_status_checks=st.sampled_from([[], [{"context": "build"}]]),
)
rules = st.lists(
    st.builds(
        RuleNode,
        st.sampled_from(TYPES),
        st.one_of(st.none(), st.builds(Id, st.sampled_from(["RS_1", "RS_2"]))),
        parameters,
    ),
    max_size=6,
)
flags = {field.name: st.booleans() for field in fields(Classic)}
classics = st.one_of(
    st.just(NO_RULE),
    st.builds(Classic, **flags | {"exists": st.just(True), "approving_reviews": st.integers(0, 6)}),
)
bypasses = st.fixed_dictionaries({"RS_1": st.booleans(), "RS_2": st.booleans()})


def leaves(merged: Merged) -> dict[str, Any]:
    """The leaves of both groups."""
    return {**merged.protection, **merged.review}


@pytest.mark.slow
@given(classic=classics, rules=rules, bypassed=bypasses)
def test_each_leaf_is_what_one_source_demands(
    classic: Classic, rules: list[RuleNode], bypassed: dict[str, bool | None]
) -> None:
    found = leaves(merge_protection(classic, rules, bypassed))
    types = {rule.type for rule in rules}
    reviews = [rule.parameters for rule in rules if rule.type == "PULL_REQUEST"]
    checks = [rule.parameters for rule in rules if rule.type == "REQUIRED_STATUS_CHECKS"]
    assert found["enabled"] == (classic.exists or bool(rules))
    assert found["allowDeletions"] == (classic.allows_deletions and "DELETION" not in types)
    assert found["allowForcePushes"] == (
        classic.allows_force_pushes and "NON_FAST_FORWARD" not in types
    )
    assert found["requiredLinearHistory"] == (
        classic.requires_linear_history or "REQUIRED_LINEAR_HISTORY" in types
    )
    assert found["requiredSignatures"] == (
        classic.requires_signatures or "REQUIRED_SIGNATURES" in types
    )
    assert found["blockCreations"] == (classic.blocks_creations or "CREATION" in types)
    assert found["strictRequiredStatusChecks"] == bool(
        classic.requires_strict_checks
        or any(
            one and one.strict_required_status_checks_policy and one.required_status_checks
            for one in checks
        )
    )
    assert found["requiredApprovingReviewCount"] == max(
        [
            classic.approving_reviews or 0,
            *(one.required_approving_review_count for one in reviews if one),
        ]
    )


@pytest.mark.slow
@given(classic=classics, rules=rules, more=rules)
def test_a_further_rule_never_loosens_anything(
    classic: Classic, rules: list[RuleNode], more: list[RuleNode]
) -> None:
    fewer, all_ = (leaves(merge_protection(classic, some, {})) for some in (rules, [*rules, *more]))
    for name in fewer.keys() - {"enforceAdmins"}:
        assert all_[name] <= fewer[name] if name in LOOSE else all_[name] >= fewer[name]


@pytest.mark.slow
@given(
    classic=classics, rules=rules, bypassed=bypasses, hidden=st.sets(st.sampled_from(list(flags)))
)
def test_what_is_known_of_a_part_is_what_is_known_of_the_whole(
    classic: Classic, rules: list[RuleNode], bypassed: dict[str, bool | None], hidden: set[str]
) -> None:
    whole = leaves(merge_protection(classic, rules, bypassed))
    partial = replace(classic, **dict.fromkeys(hidden))
    for classic_, rules_ in product((classic, partial), (rules, None)):
        for name, value in leaves(merge_protection(classic_, rules_, bypassed)).items():
            assert value is None or value == whole[name]


def test_a_branch_that_nobody_protects_allows_everything() -> None:
    found = leaves(merge_protection(NO_RULE, [], {}))
    expected = dict.fromkeys(found, False) | dict.fromkeys(LOOSE, True)
    assert found == expected | {"requiredApprovingReviewCount": 0}


def test_nothing_is_known_when_nothing_is_readable() -> None:
    assert set(leaves(merge_protection(UNREADABLE, None, {})).values()) == {None}
    assert set(leaves(merge_protection(UNREADABLE, [], {})).values()) == {None}


def test_who_binds_administrators(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Classic, list[str], dict[str, bool | None], bool | None]] = [
        (replace(NO_RULE, exists=True, enforces_admins=True), ["RS_1"], {"RS_1": True}, True),
        (replace(NO_RULE, exists=True, enforces_admins=False), ["RS_1"], {"RS_1": False}, True),
        (replace(NO_RULE, exists=True, enforces_admins=False), ["RS_1"], {"RS_1": True}, False),
        (replace(NO_RULE, exists=True, enforces_admins=False), ["RS_1"], {}, None),
        (replace(NO_RULE, exists=True, enforces_admins=False), [], {}, False),
        (replace(NO_RULE, exists=True, enforces_admins=None), ["RS_1"], {"RS_1": True}, None),
        (NO_RULE, ["RS_1", "RS_2"], {"RS_1": False, "RS_2": False}, True),
        (NO_RULE, ["RS_1", "RS_2"], {"RS_1": False, "RS_2": True}, False),
        (NO_RULE, ["RS_1", "RS_2"], {"RS_1": False}, None),
        (NO_RULE, ["RS_1", "RS_2"], {"RS_1": True}, False),
        (UNREADABLE, ["RS_1"], {"RS_1": False}, True),
        (UNREADABLE, ["RS_1"], {"RS_1": True}, None),
        (NO_RULE, [], {}, False),
    ]
    for classic, rulesets, bypassed, expected in cases:
        with subtests.test(classic=classic, rulesets=rulesets, bypassed=bypassed):
            rules = [RuleNode("DELETION", Id(ruleset), None) for ruleset in rulesets]
            assert (
                merge_protection(classic, rules, bypassed).protection["enforceAdmins"] is expected
            )


def branch_rule(**given: Any) -> BranchRule:
    """A classic rule that demands nothing but this."""
    nothing = dict.fromkeys(BranchRule.__struct_fields__, False)
    return BranchRule(**{**nothing, "required_approving_review_count": None, **given})


def test_strict_checks_that_are_not_required_do_not_count() -> None:
    assert not convert_graphql_rule(
        branch_rule(requires_strict_status_checks=True)
    ).requires_strict_checks
    both = branch_rule(requires_strict_status_checks=True, requires_status_checks=True)
    assert convert_graphql_rule(both).requires_strict_checks


def test_no_number_of_reviews_is_none() -> None:
    assert convert_graphql_rule(branch_rule()).approving_reviews == 0


def test_both_interfaces_say_the_same_of_a_rule_that_demands_nothing() -> None:
    assert convert_rest_rule(RestRule()) == convert_graphql_rule(branch_rule())
    assert convert_rest_rule(RestRule()) == replace(
        NO_RULE, exists=True, allows_deletions=False, allows_force_pushes=False
    )
