"""Merge times of pull requests, from as few pages as the figures need.

Population: the 100 pull requests merged last and all that were merged in the last 30 days, which
is complete long before every page is read. Times are milliseconds since the epoch.
"""

import heapq
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from factbook.clock import DAY, HOUR, SECOND
from factbook.outbound.outcomes import Missing, Outcome

MONTH: Final = 30 * DAY
NEWEST: Final = 100
# Of a repository where bots do nearly everything, people's are looked for among so many.
MOST_WITH_BOTS: Final = 1_000


class MergedPull(NamedTuple):
    """A merged pull request; `author` is None when the account is gone."""

    number: int
    title: str
    author: str | None
    is_bot: bool
    created_at: int
    merged_at: int
    updated_at: int

    @property
    def hours(self) -> float:
        """The time from opening to merging."""
        return (self.merged_at - self.created_at) / HOUR


def milliseconds(moment: datetime) -> int:
    """Milliseconds since the epoch."""
    return round(moment.timestamp() * SECOND)


def timestamp(moment: int) -> str:
    """A time as code hosts read it, to the second."""
    return datetime.fromtimestamp(moment // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def complete(seen: Iterable[MergedPull], last_updated: int, cutoff: int, *, bots: bool) -> bool:
    """True if the pages read so far, in descending order of update, hold the whole population.

    `last_updated` is the update time of the last pull request read. A merge updates a pull request,
    so none on a later page was merged after it. Without `bots`, reading may stop after
    `MOST_WITH_BOTS` pull requests and those of the last month.
    """
    if last_updated >= cutoff:
        return False
    pulls = list(seen)
    newest = heapq.nlargest(NEWEST, (one.merged_at for one in pulls if bots or not one.is_bot))
    if len(newest) == NEWEST and newest[-1] >= last_updated:
        return True
    if bots or len(pulls) < MOST_WITH_BOTS:
        return False
    return max(one.merged_at for one in pulls) >= last_updated


def figures(
    seen: Iterable[MergedPull], cutoff: int, *, bots: bool = True
) -> dict[str, dict[str, Any]]:
    """The groups mergeTime and latestMergedPR, and pullRequests.mergedLastMonth.

    `seen` must be `complete`, or hold every pull request. Without `bots`, merge times exclude pull
    requests of bots. A figure without any pull request to compute it from is not applicable.
    """
    newest = sorted(seen, key=lambda pull: pull.merged_at, reverse=True)
    counted = [pull for pull in newest if bots or not pull.is_bot]
    month = [pull for pull in counted if pull.merged_at >= cutoff]
    population = counted[: max(NEWEST, len(month))]
    return {
        "pullRequests": {"mergedLastMonth": sum(pull.merged_at >= cutoff for pull in newest)},
        "mergeTime": {**_times(population, "Hours"), **_times(month, "LastMonthHours")},
        "latestMergedPR": _latest(newest),
    }


def percentage(merged: int | Missing, total: int | Missing) -> float | Missing:
    """The share of merged pull requests among all, from 0 to 100."""
    if isinstance(total, Missing):
        return total
    if isinstance(merged, Missing):
        return merged
    if total == 0:
        return Missing(Outcome.NOT_APPLICABLE, "there are no pull requests")
    return round(100 * merged / total, 2)


def _times(pulls: list[MergedPull], suffix: str) -> dict[str, Any]:
    if not pulls:
        none = Missing(Outcome.NOT_APPLICABLE, "no merged pull request to take it of")
        return {f"{name}{suffix}": none for name in ("avg", "min", "max")}
    hours = [pull.hours for pull in pulls]
    return {
        f"avg{suffix}": round(sum(hours) / len(hours), 2),
        f"min{suffix}": round(min(hours), 2),
        f"max{suffix}": round(max(hours), 2),
    }


def _latest(newest: list[MergedPull]) -> dict[str, Any]:
    if not newest:
        none = Missing(Outcome.NOT_APPLICABLE, "no pull request was merged")
        return {"title": none, "author": none}
    gone = Missing(Outcome.NOT_APPLICABLE, "the author's account is gone")
    return {"title": newest[0].title, "author": newest[0].author or gone}
