"""A pytest plugin for runs with a planted fault: chooses and orders tests, and writes failures."""

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that `tests.planted.working_copy` passes."""
    group = parser.getgroup("planted")
    group.addoption("--failures", type=Path, help="the file to which ids of failed tests are added")
    group.addoption("--first", default="", help="the test to run first, without its parameters")
    group.addoption("--listed", type=Path, help="a file with the ids of the only tests to run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the listed tests, and run those on SQLite before those on PostgreSQL.

    The quicker tests come first.
    """
    if config.option.listed is not None:
        listed = set(config.option.listed.read_text("utf-8").splitlines())
        items[:] = [item for item in items if item.nodeid in listed]

    def rank(item: pytest.Item) -> tuple[bool, bool]:
        name, _, parameters = item.nodeid.partition("[")
        return name != config.option.first, "postgresql" in parameters

    items.sort(key=rank)


class _Failures:
    """Appends the id of each test that fails to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._add(report.nodeid)

    def _add(self, nodeid: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{nodeid}\n")


def pytest_configure(config: pytest.Config) -> None:
    """Write failures, in the process that reports those of all workers."""
    if config.option.failures is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Failures(config.option.failures), "planted-failures")
