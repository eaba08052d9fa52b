"""Counts as linked bars, score trends, and URLs of filtered pages."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode

from factbook.checks.definitions.scorecard import NO_LEVEL_TITLE, NO_LEVEL_WORD, Scorecard
from factbook.checks.results.grader import NO_LEVEL, LevelTally
from factbook.checks.results.state_store import StateCounts
from factbook.checks.scorecard_figures import TrendPoint
from factbook.clock import DAY
from factbook.web import formats
from factbook.web.charts import Point
from factbook.web.formats import quote_segment
from factbook.web.pages import PageContext

# CSS kind of each state.
STATE_KINDS: Final = {
    "pass": "good",
    "fail": "bad",
    "unknown": "unknown",
    "exempt": "exempt",
    "not-applicable": "outside",
}


class Share(NamedTuple):
    """A count as a bar, scaled to `most`; `path` links to the counted entities.

    If `value` is a mean, `population` is the number of entities averaged.
    """

    label: str
    value: int
    most: int
    path: str | None
    kind: str = ""
    population: int | None = None


class Address(NamedTuple):
    """The path and query of a page, used to build related URLs."""

    path: str
    query: dict[str, str]

    def to(self, **changes: str | None) -> str:
        """Build a URL with changed parameters and no cursor; None removes a parameter."""
        asked = {**self.query, "cursor": None, **changes}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        return f"{self.path}?{query}" if query else self.path


class ResultFigures(NamedTuple):
    """Pass rate (of known results) and coverage (known results of all)."""

    counts: StateCounts

    @property
    def known(self) -> int:
        """Number of known results: passing and failing."""
        return self.counts.passing + self.counts.failing

    @property
    def total(self) -> int:
        """Number of known and unknown results; others don't count."""
        return self.known + self.counts.undecided

    @property
    def passing(self) -> str:
        """Percentage of known results that pass."""
        return formats.format_share(self.counts.passing, self.known)

    @property
    def coverage(self) -> str:
        """Percentage of results that are known."""
        return formats.format_share(self.known, self.total)

    @property
    def meter(self) -> Share:
        """Passing results out of all; the empty part is failing or unknown."""
        label = f"{self.counts.passing} of {self.total} pass"
        return Share(label, self.counts.passing, self.total, None, "good")


def make_filter_address(visit: PageContext, path: str, names: Iterable[str]) -> Address:
    """Address of a page with the named parameters of the current query."""
    return Address(path, {name: text for name in names if (text := visit.query(name))})


def make_check_path(check_id: str, **query: str) -> str:
    """Path of the check page, with a query."""
    return _make_address(f"/checks/{quote_segment(check_id)}", query)


def make_scorecard_path(scorecard_id: str, page: str = "", **query: str) -> str:
    """Path of a scorecard page, with a query."""
    return _make_address(f"/scorecards/{quote_segment(scorecard_id)}{page and '/'}{page}", query)


def make_state_shares(check_id: str, counts: StateCounts, **query: str) -> list[Share]:
    """Entities by check state; `query` narrows the linked pages."""
    most = sum(counts)
    return [
        Share(word, count, most, make_check_path(check_id, **query, state=word), kind)
        for (word, kind), count in zip(STATE_KINDS.items(), counts, strict=True)
    ]


def make_level_shares(card: Scorecard, tally: LevelTally, **query: str) -> list[Share]:
    """Entities by scorecard level, highest first; `query` narrows the linked pages.

    Empty for a scorecard without levels.
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
            make_scorecard_path(card.id, "entities", **query, level=id_),
            "" if rank else "outside",
        )
        for id_, title, rank in named
    ]


def make_trend_points(found: Sequence[TrendPoint]) -> list[Point]:
    """Mean score per day; None for days without scores."""
    return [(point.day * DAY, point.figures.mean) for point in found]


def describe_populations(found: Sequence[TrendPoint]) -> dict[int, str]:
    """Chart notes per day: how many of all entities had a score."""
    return {
        point.day * DAY: f"of {point.figures.scored:,} of {point.figures.total:,} entities"
        for point in found
    }


def _make_address(path: str, query: dict[str, str]) -> str:
    given = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path
