"""What anybody can bring about takes a line of the log a minute."""

from collections.abc import Callable

from structlog.testing import capture_logs

from factbook.http.uvicorn_protocol import Tally


def test_each_minute_with_events_takes_a_line() -> None:
    tally = Tally("somethings")
    due: list[Callable[[], None]] = []

    def later(seconds: float, function: Callable[[], None]) -> None:
        assert seconds == 60
        due.append(function)

    with capture_logs() as lines:
        for kind in "abbcc":
            tally.add(kind, later)
        due.pop()()
        due.pop()()
        assert not due  # nothing waits where nothing happens
        tally.add("a", later)
    assert [line["counts"] for line in lines] == [{"a": 1}, {"b": 2, "c": 2}, {"a": 1}]
