"""The marks of browsers from which somebody has signed in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.auth.sessions import (
    MARK_LIFETIME,
    make_browser_mark,
    make_mark_name,
    recognize_browser,
)
from factbook.clock import SECOND
from tests.service import NOON

KEY = b"k" * 64
KIM, LOU = "user:default/kim", "user:default/lou"
HASH = "$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$aGFzaA"


def test_a_mark_is_recognized_until_it_ends() -> None:
    value = make_browser_mark(KEY, KIM, HASH, NOON)
    found = recognize_browser(KEY, value, KIM, HASH, NOON)
    assert found
    assert recognize_browser(KEY, value, KIM, HASH, NOON + MARK_LIFETIME - SECOND) == found
    assert recognize_browser(KEY, value, KIM, HASH, NOON + MARK_LIFETIME) is None


def test_a_mark_is_of_one_person_one_password_and_one_key() -> None:
    value = make_browser_mark(KEY, KIM, HASH, NOON)
    assert recognize_browser(KEY, value, LOU, HASH, NOON) is None
    assert recognize_browser(KEY, value, KIM, HASH + "x", NOON) is None
    assert recognize_browser(KEY, value, KIM, None, NOON) is None
    assert recognize_browser(b"l" * 64, value, KIM, HASH, NOON) is None
    assert recognize_browser(KEY, make_browser_mark(KEY, KIM, "", NOON), KIM, None, NOON) is None


def test_each_mark_has_an_id_of_its_own_and_names_nobody() -> None:
    first, second = (make_browser_mark(KEY, KIM, HASH, NOON) for _ in range(2))
    ids = {recognize_browser(KEY, value, KIM, HASH, NOON) for value in (first, second)}
    assert len(ids) == 2
    assert make_mark_name(KEY, KIM) == make_mark_name(KEY, KIM) != make_mark_name(KEY, LOU)
    assert "kim" not in first + make_mark_name(KEY, KIM)


def test_what_is_no_mark_is_not_recognized(subtests: pytest.Subtests) -> None:
    cases: list[str | None] = [None, "", ".", "..", "a.b.c", "é", "\udcff.1.2"]
    for value in cases:
        with subtests.test(value=value):
            assert recognize_browser(KEY, value, KIM, HASH, NOON) is None


@pytest.mark.slow
@given(st.data())
def test_no_mark_can_be_changed(data: st.DataObject) -> None:
    value = make_browser_mark(KEY, KIM, HASH, NOON)
    place = data.draw(st.integers(0, len(value) - 1))
    other = data.draw(st.characters().filter(lambda letter: letter != value[place]))
    assert (
        recognize_browser(KEY, value[:place] + other + value[place + 1 :], KIM, HASH, NOON) is None
    )
