"""A pytest plugin that prints how long each file takes, for `LONGEST` in the tables."""

from collections import defaultdict

import pytest

_LISTED = 25


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FileTimes())


class FileTimes:
    """The seconds of each file: those of its tests, their fixtures among them."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section(f"slowest {_LISTED} files")
        slowest = sorted(self._seconds.items(), key=lambda item: -item[1])
        for path, seconds in slowest[:_LISTED]:
            terminalreporter.write_line(f"{seconds:7.1f}s {path}")
