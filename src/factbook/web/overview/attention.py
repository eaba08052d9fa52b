"""Checks that need attention: which fail most, newly fail, and have gone unknown."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from factbook.checks.digests import recent_changes
from factbook.checks.states.count_store import StateCounts
from factbook.clock import DAY
from factbook.storage import Database
from factbook.web.checks import shares
from factbook.web.data_sources.fact_across import Share

_WEEK: Final = 7 * DAY
_SHOWN: Final = 5


class ChecksInTrouble(NamedTuple):
    """Checks with the numbers of entities, the most first; `pass_again` counts all of a week.

    `is_cut`: of the changes of the week, only the last `most` were looked at.
    """

    worst: list[Share]
    newly_failing: list[Share]
    gone_unknown: list[Share]
    pass_again: int
    is_cut: bool
    most: int = recent_changes.MOST


async def checks_in_trouble(
    database: Database, counts: Mapping[str, StateCounts], titles: Mapping[str, str], now: int
) -> ChecksInTrouble:
    """Checks in effect that need attention; `counts` are theirs."""
    found = await recent_changes.since(database, now - _WEEK, now)
    return ChecksInTrouble(
        _most({id_: one.failing for id_, one in counts.items()}, "fail", counts, titles),
        _most(found.to("fail"), "fail", counts, titles),
        _most(found.to("unknown"), "unknown", counts, titles),
        sum(number for id_, number in found.to("pass").items() if id_ in counts),
        found.is_cut,
    )


def _most(
    numbers: Mapping[str, int],
    word: str,
    counts: Mapping[str, StateCounts],
    titles: Mapping[str, str],
) -> list[Share]:
    """The checks with the highest numbers, which lead to the entities of a state."""
    found = [(id_, number) for id_, number in numbers.items() if number and id_ in counts]
    found.sort(key=lambda one: (-one[1], one[0]))
    return [
        Share(
            titles.get(id_, id_),
            number,
            max(number, sum(counts[id_][:3])),
            shares.check_path(id_, state=word),
            shares.KINDS[word],
        )
        for id_, number in found[:_SHOWN]
    ]
