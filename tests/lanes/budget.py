"""A pytest plugin for `make quick` that starts no test after the time is up."""

import time
from collections.abc import Generator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--until", type=float, help="the monotonic time after which no test begins")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Budget(config.getoption("--until")))


class Budget:
    """Stops collecting files after half of the time, and stops the run at its end."""

    def __init__(self, until: float) -> None:
        self._started = time.monotonic()
        self._end = until
        self._end_of_collection = (self._started + until) / 2
        self._selected = 0
        self._ran = 0
        self._unread = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> pytest.CollectReport | None:
        """Collect nothing from a file after half of the time: importing tests takes seconds."""
        if not isinstance(collector, pytest.Module) or time.monotonic() < self._end_of_collection:
            return None
        self._unread += 1
        return pytest.CollectReport(collector.nodeid, "passed", None, [])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._selected = len(session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if time.monotonic() > self._end:
            return True
        self._ran += 1
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, None, None]:
        """Succeed if the time ran out and nothing failed, or if no test is near the change."""
        late = exitstatus == pytest.ExitCode.INTERRUPTED and time.monotonic() > self._end
        if late or exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode(bool(session.testsfailed))
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        seconds = round(time.monotonic() - self._started)
        unread = f" (test files not read: {self._unread})" if self._unread else ""
        rest = "" if self._ran == self._selected and not unread else "; `make test` runs the rest"
        terminalreporter.write_line(
            f"Ran {self._ran} of {self._selected} tests in {seconds} s{unread}{rest}."
        )
