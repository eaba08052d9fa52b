from typing import Any

import pytest

from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.state import FAIL, INAPPLICABLE, PASS, UNKNOWN
from tests.checks.making import check, entity, evaluated

PASSES = {"source": "s", "fact": "yes", "operator": "equal", "value": True}
FAILS = {"source": "s", "fact": "no", "operator": "equal", "value": True}
UNKNOWNS = {"source": "s", "fact": "gone", "operator": "equal", "value": True}


@pytest.fixture
def subject() -> CheckedEntity:
    return entity({"s": {"yes": True, "no": False}})


@pytest.mark.parametrize(
    ("rule", "state"),
    [
        ({"all": [PASSES, PASSES]}, PASS),
        ({"all": [PASSES, UNKNOWNS]}, UNKNOWN),
        ({"all": [UNKNOWNS, FAILS]}, FAIL),
        ({"any": [FAILS, FAILS]}, FAIL),
        ({"any": [FAILS, UNKNOWNS]}, UNKNOWN),
        ({"any": [UNKNOWNS, PASSES]}, PASS),
        ({"not": PASSES}, FAIL),
        ({"not": FAILS}, PASS),
        ({"not": UNKNOWNS}, UNKNOWN),
        ({"not": {"all": [UNKNOWNS, {"any": [FAILS, FAILS]}]}}, PASS),
    ],
)
def test_a_part_that_is_unknown_decides_nothing(
    subject: CheckedEntity, rule: Any, state: int
) -> None:
    assert evaluated(check(rule), subject).state == state


@pytest.mark.parametrize(("condition", "state"), [(FAILS, INAPPLICABLE), (UNKNOWNS, UNKNOWN)])
def test_a_check_is_not_applied_where_its_condition_does_not_hold(
    subject: CheckedEntity, condition: Any, state: int
) -> None:
    one = check(PASSES, applicableWhen=condition)

    assert evaluated(one, subject).state == state


@pytest.mark.parametrize(("wanted", "state"), [("fail", FAIL), ("pass", PASS)])
def test_a_check_may_say_what_unknown_counts_as(
    subject: CheckedEntity, wanted: str, state: int
) -> None:
    assert evaluated(check(UNKNOWNS, onUnknown=wanted), subject).state == state
