"""Counts of checks and scorecards as bars, each of which leads to what it counts."""

from typing import Final, NamedTuple
from urllib.parse import urlencode

from factbook.checks.definitions.scorecard import NO_LEVEL_TITLE, NO_LEVEL_WORD, Scorecard
from factbook.checks.results.grader import NO_LEVEL, LevelTally
from factbook.checks.results.state_store import StateCounts
from factbook.web.data_sources.fact_across import Share
from factbook.web.site import formats
from factbook.web.site.formats import segment

# The kind of the pages for each state.
KINDS: Final = {
    "pass": "good",
    "fail": "bad",
    "unknown": "unknown",
    "exempt": "exempt",
    "not-applicable": "outside",
}


class ResultFigures(NamedTuple):
    """Pass rate and coverage of results: of those that are known, and of all."""

    counts: StateCounts

    @property
    def known(self) -> int:
        """The number of results that are known."""
        return self.counts.passing + self.counts.failing

    @property
    def total(self) -> int:
        """The number of results that are known or should be."""
        return self.known + self.counts.undecided

    @property
    def passing(self) -> str:
        """The share of known results that pass."""
        return formats.percent(self.counts.passing, self.known)

    @property
    def coverage(self) -> str:
        """The share of results that are known."""
        return formats.percent(self.known, self.total)

    @property
    def meter(self) -> Share:
        """The passing results as a part of all, so that what is unknown is left empty."""
        label = f"{self.counts.passing} of {self.total} pass"
        return Share(label, self.counts.passing, self.total, None, "good")


def check_path(check_id: str, **query: str) -> str:
    """Path of the page of a check, with what its query asks."""
    return _address(f"/checks/{segment(check_id)}", query)


def scorecard_path(scorecard_id: str, page: str = "", **query: str) -> str:
    """Path of a page of a scorecard."""
    return _address(f"/scorecards/{segment(scorecard_id)}{page and '/'}{page}", query)


def of_states(check_id: str, counts: StateCounts, **query: str) -> list[Share]:
    """The entities of a check by state; `query` is what they have in common."""
    most = sum(counts)
    return [
        Share(word, count, most, check_path(check_id, **query, state=word), kind)
        for (word, kind), count in zip(KINDS.items(), counts, strict=True)
    ]


def of_levels(card: Scorecard, tally: LevelTally, **query: str) -> list[Share]:
    """The entities of a scorecard by level, the highest first; `query` is what they share.

    A scorecard without levels has none.
    """
    if not card.levels:
        return []
    named = [(level.id, level.title, rank) for rank, level in enumerate(card.levels, 1)][::-1]
    named.append((NO_LEVEL_WORD, NO_LEVEL_TITLE, NO_LEVEL))
    return [
        Share(
            title,
            tally.levels.get(rank, 0),
            tally.total,
            scorecard_path(card.id, "entities", **query, level=id_),
            "" if rank else "outside",
        )
        for id_, title, rank in named
    ]


def _address(path: str, query: dict[str, str]) -> str:
    given = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path
