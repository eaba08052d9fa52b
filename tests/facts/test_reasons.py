"""The reasons for which something is not known."""

import pytest

from factbook.facts.schema import REASONS, reason_word


def test_a_reason_says_what_it_means_and_what_comes_next(subtests: pytest.Subtests) -> None:
    for reason in REASONS:
        with subtests.test(reason=reason):
            meaning, advice = REASONS[reason].split(". ", 1)
            assert meaning[0].isupper()
            assert advice.endswith(".")


def test_a_reason_is_known_by_its_word() -> None:
    assert reason_word("rate-limited") == "rate-limited"
    assert reason_word("forbidden: the token lacks a scope") == "forbidden"
    assert reason_word("something else: entirely") == "upstream-error"
