"""A pytest plugin for `make quick`, which runs no more tests when the time is up."""

import time
from collections.abc import Generator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seconds", type=float, default=25.0, help="begin no test after this time")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Budget(config.getoption("--seconds")))


class Budget:
    """Ends the collection of files at 40% of the time, and the run when all of it is used."""

    def __init__(self, seconds: float) -> None:
        self._started = time.monotonic()
        self._seconds = seconds
        self._selected = 0
        self._ran = 0
        self._unread = 0

    def _used(self, share: float) -> bool:
        return time.monotonic() - self._started > self._seconds * share

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> pytest.CollectReport | None:
        """Collect nothing from a file when it is late. To import tests takes seconds."""
        if not isinstance(collector, pytest.Module) or not self._used(0.4):
            return None
        self._unread += 1
        return pytest.CollectReport(collector.nodeid, "passed", None, [])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._selected = len(session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if self._used(1):
            return True
        self._ran += 1
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int
    ) -> Generator[None, None, None]:
        """Succeed if the time ran out and nothing failed, or if no test is near the change."""
        late = exitstatus == pytest.ExitCode.INTERRUPTED and self._used(1)
        if late or exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode(bool(session.testsfailed))
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        seconds = round(time.monotonic() - self._started)
        unread = f" and of {self._unread} more files none" if self._unread else ""
        rest = "" if self._ran == self._selected and not unread else "; `make test` runs the rest"
        terminalreporter.write_line(
            f"Ran {self._ran} of {self._selected} tests{unread} in {seconds} s{rest}."
        )
