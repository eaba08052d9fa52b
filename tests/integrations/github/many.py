"""Many repositories on one GitHub, and how their collection ended."""

from collections import Counter

from factbook.clock import DAY, HOUR
from factbook.integrations.integration import Collected
from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Pull, Repository
from tests.integrations.github.asking import Collector
from tests.service import NOON


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


def quiet(count: int) -> list[Repository]:
    """Repositories of which none needs a second page."""
    repositories = many(count)
    for one in repositories:
        one.pulls = one.pulls[:1]
    return repositories


def words(collected: dict[str, Collected]) -> Counter[str]:
    """How many targets are complete (""), or missing altogether by which word."""
    return Counter(
        one.missing[""].reason.split(":")[0] if "" in one.missing else ""
        for one in collected.values()
    )


async def every(fake: FakeGitHub, collector: Collector) -> dict[str, Collected]:
    """What one run brings for every repository."""
    return await collector.collect(*(one.name for one in fake.repositories))
