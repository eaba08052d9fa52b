"""How often something may happen."""

from hypothesis import given
from hypothesis import strategies as st

from factbook.clock import HOUR, SECOND
from factbook.http.admission import RateLimit
from tests.service import NOON, Time


def test_a_burst_is_allowed_at_once_and_then_the_rate() -> None:
    time = Time()
    limit = RateLimit(2, 5, time)
    assert [limit.take("a") for _ in range(7)] == [0, 0, 0, 0, 0, 1, 1]
    time.advance(SECOND // 2)
    assert [limit.take("a") for _ in range(2)] == [0, 1]
    time.advance(100 * SECOND)
    assert [limit.take("a") for _ in range(6)] == [0, 0, 0, 0, 0, 1]


def test_each_key_has_an_allowance_of_its_own() -> None:
    limit = RateLimit(1, 1, Time())
    assert [limit.take(key) for key in ("a", "b", "a", "b")] == [0, 0, 1, 1]


def test_the_wait_that_is_told_is_enough_and_refusals_do_not_lengthen_it() -> None:
    time = Time()
    limit = RateLimit(0.1, 2, time)
    assert [limit.take("a") for _ in range(2)] == [0, 0]
    assert [limit.take("a") for _ in range(50)] == [10] * 50
    time.advance(9_001)
    assert limit.take("a") == 1
    time.advance(999)
    assert limit.take("a") == 0


@given(
    st.floats(0.01, 100),
    st.integers(1, 50),
    st.lists(st.integers(0, 3 * SECOND), min_size=1, max_size=80),
)
def test_never_more_is_allowed_than_the_burst_and_the_rate_since(
    rate: float, burst: int, pauses: list[int]
) -> None:
    time = Time()
    limit, allowed = RateLimit(rate, burst, time), 0
    for pause in pauses:
        time.advance(pause)
        wait = limit.take("key")
        allowed += wait == 0
        assert allowed <= burst + rate * (time() - NOON) / SECOND + 1e-6
        if wait:
            before = time.now
            time.advance(wait * SECOND)
            assert limit.take("key") == 0
            allowed += 1
            assert time.now - before <= max(SECOND, SECOND / rate + SECOND)


def test_keys_whose_allowance_is_full_again_are_forgotten() -> None:
    time = Time()
    limit = RateLimit(1, 2, time)
    for number in range(9_990):
        limit.take(f"old {number}")
    time.advance(2 * SECOND)
    limit.take("kept")
    limit.take("kept")
    for number in range(20):
        limit.take(f"new {number}")
    assert len(limit._full_at) < 50
    assert limit.take("kept") == 1


def test_a_clock_that_is_set_back_refuses_nobody_for_longer() -> None:
    time = Time()
    limit = RateLimit(1, 2, time)
    assert [limit.take("a"), limit.take("a")] == [0, 0]
    time.advance(-HOUR)
    assert limit.take("a") == 0
