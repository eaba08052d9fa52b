"""Times as people read them."""

import pytest

from factbook.clock import DAY, HOUR, MINUTE, SECOND, ago, span


def test_a_length_of_time_is_rounded_in_its_largest_unit(subtests: pytest.Subtests) -> None:
    for milliseconds, message in [
        (0, "0 ms"),
        (999, "999 ms"),
        (SECOND, "1 second"),
        (59_400, "59 seconds"),
        (59_600, "1 minute"),
        (89 * SECOND, "1 minute"),
        (3 * MINUTE - 1, "3 minutes"),
        (HOUR - SECOND, "1 hour"),
        (23 * HOUR + 45 * MINUTE, "1 day"),
        (90 * DAY - SECOND, "90 days"),
        (90 * DAY, "90 days"),
        (90 * DAY + 11 * HOUR, "90 days"),
    ]:
        with subtests.test(milliseconds=milliseconds):
            assert span(milliseconds) == message


def test_what_ends_in_ninety_days_does_so_a_moment_later_too() -> None:
    assert ago(90 * DAY, 2 * SECOND) == "in 90 days"
    assert ago(2 * SECOND, 90 * DAY) == "90 days ago"
