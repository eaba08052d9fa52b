"""Many repositories on one GitHub, and how their collection ended."""

from dataclasses import replace
from typing import Any
import pytest
from factbook.clock import DAY, HOUR
from factbook.sources.github import FACTS
from factbook.sources.integration import Collected
from tests.fakes.github.state import Issue, Pull, Repository, Ruleset, Token
from tests.service import NOON
from tests.sources.github.asking import APP, EVERYTHING, TOKEN, full, started
from collections import Counter
from factbook.clock import DAY, HOUR, MINUTE
from factbook.sources.github.client import BATCH
from tests.fakes import faults
from tests.fakes.faults import Fault
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.faults import of_another_form, secondary_limit
from tests.fakes.github.state import Pull, Repository, Token
from tests.sources.github.asking import APP, EVERYTHING, TOKEN, Collector, full, started


def many(count: int) -> list[Repository]:
    """Repositories of which three of ten need a second page of pull requests."""
    busy = [
        Pull(number, "Busy", NOON - 9 * DAY, merged_at, merged_at)
        for number in range(120)
        for merged_at in [NOON - number * HOUR]
    ]
    quiet = [Pull(1, "Quiet", NOON - 5 * DAY, NOON - 4 * DAY, NOON - 4 * DAY)]
    return [
        Repository(
            f"acme/app-{number:04}",
            pulls=busy if number % 10 < 3 else quiet,
            files=["README.md"],
            classic={},
            alerts={"OPEN": 1},
        )
        for number in range(count)
    ]


def words(collected: dict[str, Collected]) -> Counter[str]:
    """How many targets are complete (""), or missing altogether by which word."""
    return Counter(
        one.missing[""].reason.split(":")[0] if "" in one.missing else ""
        for one in collected.values()
    )
