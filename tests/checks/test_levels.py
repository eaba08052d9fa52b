"""Levels and scores: what an entity's checks add up to."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.checks import state
from factbook.checks.definitions.scorecard import Scorecard, ScorecardEntry, ScorecardLevel
from factbook.checks.results.grader import Grader, Standing, decode_level, replace_slot_levels

STATES = (*range(6), *(one | state.EXEMPT for one in range(6)))
LEVELS = tuple(ScorecardLevel(name, name) for name in ("bronze", "silver", "gold"))
SLOTS = {f"c{slot}": slot for slot in range(1, 9)}

entries = st.builds(
    ScorecardEntry,
    check=st.sampled_from([*SLOTS, "draft"]),
    level=st.sampled_from([None, "bronze", "silver", "gold"]),
    weight=st.integers(1, 5),
    advisory=st.booleans(),
    effort=st.integers(1, 3),
)
scorecards = st.builds(
    Scorecard,
    id=st.just("s"),
    title=st.just("S"),
    levels=st.sampled_from([LEVELS]),
    entries=st.lists(entries, min_size=1, max_size=9, unique_by=lambda one: one.check).map(tuple),
    minimum_coverage=st.sampled_from([0.0, 0.5, 1.0]),
)
vectors = st.lists(st.sampled_from(STATES), max_size=8).map(bytes)


def word(vector: bytes, check: str) -> str:
    """The state of a check in plain words."""
    slot = SLOTS[check]
    byte = vector[slot - 1] if slot <= len(vector) else state.NONE
    if byte & state.EXEMPT:
        return "out"
    return {
        state.PASS: "pass",
        state.FAIL: "fail",
        state.OUT: "out",
        state.INAPPLICABLE: "out",
    }.get(byte, "unknown")


def by_hand(scorecard: Scorecard, vector: bytes) -> Standing:
    """The definition of a standing, word for word and slowly."""
    found = [
        (one, word(vector, one.check))
        for one in scorecard.entries
        if one.check in SLOTS and not one.advisory
    ]
    applicable = [(one, said) for one, said in found if said != "out"]

    def level(blocking: set[str], helping: set[str]) -> int:
        if not any(said in helping for _, said in applicable):
            return 0
        reached = 0
        for rank in range(1, len(scorecard.levels) + 1):
            own = [said for one, said in applicable if scorecard.rank(one.level) == rank]
            if any(said in blocking for said in own):
                break
            reached = rank
        return reached

    def weight(*words: str) -> Fraction:
        return Fraction(sum(one.weight for one, said in applicable if said in words))

    known, all_ = weight("pass", "fail"), weight("pass", "fail", "unknown")
    coverage = known / all_ if all_ else None
    has_score = known and coverage is not None and coverage >= scorecard.minimum_coverage
    return Standing(
        level({"fail", "unknown"}, {"pass"}),
        level({"fail"}, {"pass", "unknown"}),
        float(weight("pass") / known) if has_score else None,
        None if coverage is None else float(coverage),
    )


@pytest.mark.slow
@given(scorecards, vectors)
def test_a_standing_is_what_its_definition_says(scorecard: Scorecard, vector: bytes) -> None:
    assert Grader(scorecard, SLOTS).standing(vector) == by_hand(scorecard, vector)


@pytest.mark.slow
@given(scorecards, vectors)
def test_what_is_stored_of_a_standing_rounds_down(scorecard: Scorecard, vector: bytes) -> None:
    grader = Grader(scorecard, SLOTS)
    wanted = by_hand(scorecard, vector)
    stored = replace_slot_levels(b"", [(2, grader.encoded(vector))])
    found = decode_level(stored, 2)
    assert decode_level(stored, 1) is None
    assert decode_level(stored, 3) is None
    assert found is not None
    assert (found.level, found.level_if_known) == wanted[:2]
    for percent, share in zip(found[2:], wanted[2:], strict=True):
        assert (percent is None) == (share is None)
        if percent is not None and share is not None:
            assert (percent == 100) == (share == 1)
            assert percent <= share * 100 + 1e-9 < percent + 1


@pytest.mark.slow
@given(scorecards, vectors)
def test_a_level_that_is_known_is_never_above_what_it_can_be(
    scorecard: Scorecard, vector: bytes
) -> None:
    found = Grader(scorecard, SLOTS).standing(vector)
    assert found.level <= found.level_if_known


@pytest.mark.slow
@given(scorecards, vectors)
def test_taking_the_next_steps_reaches_the_next_level(scorecard: Scorecard, vector: bytes) -> None:
    grader = Grader(scorecard, SLOTS)
    level = grader.standing(vector).level
    steps = grader.steps(vector)
    wanted = {one.rank for one in steps if one.rank}
    better = bytearray(vector.ljust(8, b"\0"))
    for step in steps:
        if step.rank and step.rank == min(wanted):
            better[SLOTS[step.check] - 1] = state.PASS
    after = grader.standing(bytes(better)).level
    assert after > level if wanted else after == level


@pytest.mark.slow
@given(scorecards, vectors)
def test_all_steps_together_gain_what_the_score_lacks(scorecard: Scorecard, vector: bytes) -> None:
    grader = Grader(scorecard, SLOTS)
    steps = grader.steps(vector)
    better = bytearray(vector.ljust(8, b"\0"))
    for step in steps:
        better[SLOTS[step.check] - 1] = state.PASS
    after = grader.standing(bytes(better))
    assert after.score in {None, 1.0}
    assert (after.score is None) == (after.coverage is None)
    assert [(one.rank or 99, one.effort) for one in steps] == sorted(
        (one.rank or 99, one.effort) for one in steps
    )


def card(*of: ScorecardEntry) -> Scorecard:
    return Scorecard(id="s", title="S", levels=LEVELS, entries=of)


def test_exemptions_alone_reach_no_level_and_have_no_score() -> None:
    grader = Grader(card(ScorecardEntry("c1", "bronze")), SLOTS)
    assert grader.standing(bytes([state.FAIL | state.EXEMPT])) == Standing(0, 0, None, None)


def test_an_exemption_lets_an_entity_move_on() -> None:
    grader = Grader(card(ScorecardEntry("c1", "bronze"), ScorecardEntry("c2", "silver")), SLOTS)
    exempt = bytes([state.FAIL | state.EXEMPT, state.PASS])
    assert grader.standing(exempt) == Standing(3, 3, 1.0, 1.0)


def test_an_advisory_check_never_counts() -> None:
    grader = Grader(
        card(ScorecardEntry("c1"), ScorecardEntry("c2", "bronze", advisory=True)), SLOTS
    )
    assert grader.standing(bytes([state.PASS, state.FAIL])) == Standing(3, 3, 1.0, 1.0)


def test_an_unknown_check_holds_a_level_back_until_it_is_known() -> None:
    grader = Grader(card(ScorecardEntry("c1", "bronze"), ScorecardEntry("c2", "silver")), SLOTS)
    found = grader.standing(bytes([state.PASS, state.UNKNOWN]))
    assert found == Standing(1, 3, 1.0, 0.5)
    assert [step.check for step in grader.steps(bytes([state.PASS, state.UNKNOWN]))] == ["c2"]


def test_the_cheapest_step_to_the_next_level_comes_first() -> None:
    grader = Grader(
        card(
            ScorecardEntry("c1", "silver"),
            ScorecardEntry("c2", "bronze", effort=5),
            ScorecardEntry("c3", "bronze", effort=1),
            ScorecardEntry("c4"),
        ),
        SLOTS,
    )
    steps = grader.steps(bytes([state.FAIL] * 4))
    assert [step.check for step in steps] == ["c3", "c2", "c1", "c4"]


def test_there_is_no_score_below_the_least_coverage() -> None:
    grader = Grader(card(*(ScorecardEntry(name) for name in ("c1", "c2", "c3"))), SLOTS)
    found = grader.standing(bytes([state.PASS, state.UNKNOWN, state.NONE]))
    assert found.score is None
    assert found.coverage == 1 / 3
