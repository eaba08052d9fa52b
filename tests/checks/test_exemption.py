"""Exemptions: what may be asked, and who decides what."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.checks.definitions import exemption_store
from factbook.checks.definitions.exemption_store import (
    EXEMPTION_STATES,
    Decision,
    Exemption,
    ExemptionActor,
    ExemptionRequest,
    ExemptionState,
)
from factbook.checks.definitions.scorecard import ExemptionRules
from factbook.clock import DAY, HOUR
from factbook.errors import ConflictError, InputError, InvalidItemsError, NotAllowedError
from tests.service import NOON

TODAY = NOON // DAY * DAY
DOCUMENT: dict[str, Any] = {
    "check": "slo",
    "entity": "Component:billing",
    "reason": "Frozen until it is switched off.",
    "link": "https://tickets.example.com/OPS-12",
    "from": "2026-12-01",
    "until": "2027-03-31",
}
ANN = ExemptionActor("user:default/ann", may_decide=True)
BOB = ExemptionActor("user:default/bob", frozenset({"group:default/platform"}))


def problems_of(document: object) -> dict[str, str]:
    with pytest.raises(InvalidItemsError) as raised:
        exemption_store.parse_exemption_request(document, NOON)
    problems: list[dict[str, str]] = raised.value.details["problems"]
    return {problem["path"]: problem["message"] for problem in problems}


def asked(state: ExemptionState = "requested", **fields: Any) -> Exemption:
    plain = Exemption(
        "e1", "slo", None, "component:default/a", "Why", None, NOON, NOON + DAY, state, "user:x", 0
    )
    return plain._replace(**fields)


def test_a_request_is_read_with_days_that_are_part_of_it() -> None:
    found = exemption_store.parse_exemption_request(DOCUMENT, NOON)
    assert found.entity == "component:default/billing"
    assert found.subject == "check slo"
    assert found.starts_at % DAY == 0
    assert found.until is not None
    # December to March has 121 days.
    assert found.until - found.starts_at == 121 * DAY


def test_a_request_may_name_times_and_begins_now_otherwise() -> None:
    document = {"scorecard": "s", "entity": "api:a", "reason": "x", "until": "2999-01-01T06:00:00Z"}
    found = exemption_store.parse_exemption_request(document, NOON)
    assert found.starts_at == NOON
    assert found.subject == "scorecard s"
    assert found.until is not None
    assert found.until % DAY == DAY // 4


def test_times_of_a_request_are_those_of_its_offsets(subtests: pytest.Subtests) -> None:
    cases = [
        ("2027-01-01", "2027-01-01", 24),
        ("2027-01-01T00:00:00+14:00", "2027-01-01T00:00:00-12:00", 26),
        # The night in which clocks are set back, and the one in which they are set forward.
        ("2027-10-31T02:30:00+02:00", "2027-10-31T02:30:00+01:00", 1),
        ("2027-03-28", "2027-03-28", 24),
        ("2027-03-28T01:59:00+01:00", "2027-03-28T03:59:00+02:00", 1),
    ]
    for start, until, hours in cases:
        with subtests.test(start=start, until=until):
            found = exemption_store.parse_exemption_request(
                DOCUMENT | {"from": start, "until": until}, NOON
            )
            assert found.until is not None
            assert found.until - found.starts_at == hours * HOUR


def test_an_exemption_that_ends_before_it_begins_is_refused(subtests: pytest.Subtests) -> None:
    cases = [
        ("2027-03-31", "2027-03-30"),
        ("2027-03-31T12:00:00Z", "2027-03-31T12:00:00Z"),
        # It looks later, and is earlier.
        ("2027-03-31T12:00:00+00:00", "2027-03-31T13:00:00+02:00"),
        ("2027-01-01T00:00:00-12:00", "2027-01-01T00:00:00+14:00"),
        ("2027-10-31T02:30:00+01:00", "2027-10-31T02:30:00+02:00"),
        ("2000-01-01", "2000-01-02"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ]
    for start, until in cases:
        with subtests.test(start=start, until=until):
            told = {"until": "has to be in the future, and after the start"}
            assert problems_of(DOCUMENT | {"from": start, "until": until}) == told


def test_every_mistake_is_reported_with_its_path() -> None:
    document = {
        "entity": "billing",
        "reason": " ",
        "link": "javascript:alert(1)",
        "from": "soon",
        "until": "2020-01-01",
        "state": "approved",
    }
    found = problems_of(document)
    assert found.keys() == {"check", "entity", "reason", "link", "from", "until", "state"}
    assert problems_of({**DOCUMENT, "scorecard": "s"}).keys() == {"check"}
    assert problems_of({**DOCUMENT, "reason": None}) == {"reason": "is required"}
    assert problems_of([]).keys() == {""}


def test_rules_of_a_scorecard_limit_what_may_be_asked(subtests: pytest.Subtests) -> None:
    cases: list[tuple[ExemptionRules, int | None, str | None]] = [
        (ExemptionRules(enabled=False), 10, "check"),
        (ExemptionRules(), None, "until"),
        (ExemptionRules(max_days=9), 10, "until"),
        (ExemptionRules(permanent=True, max_days=10), None, None),
        (ExemptionRules(max_days=10), 10, None),
        (ExemptionRules(), 365, None),
        (ExemptionRules(), 366, "until"),
        (ExemptionRules(max_days=3_000), 3_000, None),
        (ExemptionRules(permanent=True), 3_000, None),
    ]
    for rules, until, path in cases:
        with subtests.test(rules=rules, until=until):
            end = None if until is None else NOON + until * DAY
            request = ExemptionRequest("slo", None, "component:default/a", "Why", NOON, end)
            if path is None:
                exemption_store.check_exemption_rules(request, [rules])
                continue
            with pytest.raises(InvalidItemsError) as raised:
                # The strictest of several scorecards counts, and a mistake is told once.
                exemption_store.check_exemption_rules(
                    request, [ExemptionRules(permanent=True), rules, rules]
                )
            assert [one["path"] for one in raised.value.details["problems"]] == [path]


def test_a_check_outside_every_scorecard_has_exemptions_of_a_year_at_most() -> None:
    request = ExemptionRequest("slo", None, "component:default/a", "Why", NOON, None)
    with pytest.raises(InvalidItemsError):
        exemption_store.check_exemption_rules(request, [])
    exemption_store.check_exemption_rules(request._replace(until=NOON + 365 * DAY), [])
    with pytest.raises(InvalidItemsError):
        exemption_store.check_exemption_rules(request._replace(until=NOON + 366 * DAY), [])


def test_owners_may_ask_and_so_may_those_with_the_permission() -> None:
    exemption_store.check_requester(BOB, ["group:default/platform"])
    exemption_store.check_requester(BOB, ["user:default/bob"])
    exemption_store.check_requester(BOB._replace(may_request=True), [])
    for owners in ([], ["group:default/other"]):
        with pytest.raises(NotAllowedError):
            exemption_store.check_requester(BOB, owners)


@given(st.sampled_from(EXEMPTION_STATES), st.sampled_from(["approve", "deny", "revoke"]))
def test_an_exemption_goes_through_its_states_alone(
    state: ExemptionState, decision: Decision
) -> None:
    after = {
        ("requested", "approve"): "approved",
        ("requested", "deny"): "denied",
        ("approved", "revoke"): "revoked",
    }.get((state, decision))
    if after is None:
        with pytest.raises(ConflictError):
            exemption_store.apply_decision(asked(state), decision, ANN, [], NOON)
        return
    found = exemption_store.apply_decision(asked(state), decision, ANN, [], NOON, comment="Fine")
    assert (found.state, found.decided_by, found.decided_at) == (after, ANN.ref, NOON)
    assert found.comment == "Fine"


def test_approvers_decide_where_a_scorecard_names_them() -> None:
    rules = ExemptionRules(approvers=("group:default/platform",))
    assert (
        exemption_store.apply_decision(asked(), "approve", BOB, [rules], NOON).state == "approved"
    )
    assert (
        exemption_store.apply_decision(asked(), "approve", ANN, [rules], NOON).state == "approved"
    )
    owner = BOB._replace(groups=frozenset(), owns_subject=True)
    assert exemption_store.apply_decision(asked(), "approve", owner, [], NOON).state == "approved"
    with pytest.raises(NotAllowedError):
        exemption_store.apply_decision(asked(), "approve", owner, [rules], NOON)
    with pytest.raises(NotAllowedError):
        exemption_store.apply_decision(asked(), "approve", BOB, [], NOON)
    with pytest.raises(NotAllowedError):
        exemption_store.apply_decision(asked(), "approve", BOB, [rules, ExemptionRules()], NOON)


def test_nobody_approves_what_they_asked_for_unless_a_setting_says_so() -> None:
    own = asked(requested_by=ANN.ref)
    with pytest.raises(NotAllowedError):
        exemption_store.apply_decision(own, "approve", ANN, [], NOON)
    assert (
        exemption_store.apply_decision(own, "approve", ANN, [], NOON, own=True).state == "approved"
    )
    assert exemption_store.apply_decision(own, "deny", ANN, [], NOON).state == "denied"


def test_what_has_ended_is_not_approved_and_a_long_comment_is_refused() -> None:
    with pytest.raises(ConflictError, match="has passed"):
        exemption_store.apply_decision(asked(), "approve", ANN, [], NOON + DAY)
    with pytest.raises(InputError):
        exemption_store.apply_decision(asked(), "approve", ANN, [], NOON, comment="x" * 2001)


@given(
    st.sampled_from(EXEMPTION_STATES),
    st.integers(0, 20),
    st.none() | st.integers(1, 20),
    st.integers(0, 45),
    st.none() | st.integers(0, 45),
)
def test_the_due_time_is_when_it_begins_or_ceases_to_hold(
    state: ExemptionState, start: int, length: int | None, now: int, began_at: int | None
) -> None:
    until = None if length is None else start + length
    one = asked(state, starts_at=start, until=until, began_at=began_at)
    due = one.due(now)
    holds = [one.holds(at) for at in range(now, 50)]
    changes = [now + place for place, held in enumerate(holds) if held != holds[0]]
    if due is not None and due > now:
        assert changes[0] == due
    else:
        assert not changes


def test_an_exemption_is_shown_without_what_is_not_given() -> None:
    assert asked().render() == {
        "id": "e1",
        "check": "slo",
        "entity": "component:default/a",
        "reason": "Why",
        "from": "2026-11-21T12:00:00.000+00:00",
        "until": "2026-11-22T12:00:00.000+00:00",
        "state": "requested",
        "requestedBy": "user:x",
        "requestedAt": "1970-01-01T00:00:00.000+00:00",
    }
