"""States of data sources for display."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from markupsafe import Markup

from factbook.datasources.registry import SourceSnapshot
from factbook.facts import freshness
from factbook.facts.datasource import DataSource
from factbook.scheduling.runs import RunRecord, SourceHealth
from factbook.web.charts import element
from factbook.web.site.formats import percent

Way = Literal["collected", "pushed", "read"]


class Doing(NamedTuple):
    """A state in words, with its kind for parts.state; problems have the lowest rank."""

    words: str
    kind: Literal["good", "warn", "bad", "busy", ""]
    rank: int

    @property
    def is_problem(self) -> bool:
        """True for a state in which facts are missing or late."""
        return self.kind in ("bad", "warn")


class SourceRow(NamedTuple):
    """A data source and its state; `way` is the way that its facts arrive.

    `run_words` say what the run under way does: it runs, or waits for a rate limit.
    """

    source: DataSource
    is_builtin: bool
    way: Way
    doing: Doing
    health: SourceHealth | None
    problem: str | None
    next_run: int | None
    pushed_at: int | None
    run_words: str

    @property
    def last(self) -> RunRecord | None:
        """The last finished run of all entities."""
        return self.health and self.health.last

    @property
    def running(self) -> RunRecord | None:
        """The run of all entities that is under way."""
        return self.health and self.health.running

    @property
    def coverage(self) -> str | None:
        """Share of entities with facts in the last run."""
        last = self.last
        whole = last and last.covered + last.failed + last.skipped
        return percent(last.covered, whole) if last and whole else None


def row(
    known: SourceSnapshot,
    source_id: str,
    health_: SourceHealth | None,
    pushed_at: int | None,
    now: int,
) -> SourceRow:
    """State of the source with this id; its definition may be unusable."""
    source = known.sources.get(source_id) or DataSource(id=source_id, title=source_id, draft=True)
    problem = known.problems.get(source_id)
    way = _way(known, source_id)
    return SourceRow(
        source,
        source_id not in known.definitions and problem is None,
        way,
        _doing(source, way, health_, problem, pushed_at, now),
        health_,
        problem,
        freshness.next_run_time(source, health_, now) if source_id in known.integrations else None,
        pushed_at,
        (health_.running.wait(now) if health_ and health_.running else "") or "running",
    )


def _way(known: SourceSnapshot, source_id: str) -> Way:
    definition = known.definitions.get(source_id)
    if definition is not None and definition.type == "push":
        return "pushed"
    return "collected" if source_id in known.integrations or definition else "read"


def _doing(
    source: DataSource,
    way: Way,
    found: SourceHealth | None,
    problem: str | None,
    pushed_at: int | None,
    now: int,
) -> Doing:
    if problem is not None:
        return Doing("cannot run", "bad", 0)
    if way == "read":
        return Doing("read from the catalog", "good", 7)
    if way == "pushed" and pushed_at is None and not source.draft:
        return Doing("no facts yet", "", 4)
    if found is not None and found.last is not None and not any(parts_of(found.last).values()):
        return Doing("no entities yet", "", 4)
    state = freshness.source_condition(source, found, now, pushed_at=pushed_at).state
    if state == "new" and found is not None and found.running:
        return Doing(found.running.wait(now) or "running", "busy", 2)
    return DOING[state]


DOING: Final[Mapping[freshness.State, Doing]] = {
    "down": Doing("down", "bad", 0),
    "partial": Doing("partly failing", "warn", 1),
    "late": Doing("late", "warn", 1),
    "new": Doing("new", "", 2),
    "up": Doing("up", "good", 3),
    "draft": Doing("draft", "", 6),
}
"""Every state of a source, in the words of the pages."""


def bar(run: RunRecord, place: str) -> Markup:
    """Entities of a run as one bar: covered, failed, skipped, and still to come.

    It stretches to its place. `place` makes its ids differ from those of the same bar elsewhere on
    the page.
    """
    shown = {name: count for name, count in parts_of(run).items() if count} or {"to come": 1}
    whole, room, x = sum(shown.values()), _WIDTH - _LEAST * len(shown), 0.0
    shapes = []
    for name, count in shown.items():
        # Each part can be seen, however small.
        width = _LEAST + room * count / whole
        shapes.append(element("rect", x=x, y=0, width=width, height=1, class_=_FILLS[name]))
        x += width
    title = f"{place}-{run.id}"
    return element(
        "svg",
        element("title", f"Entities of the run: {figures(run)}", id=title),
        *shapes,
        class_="run-bar",
        viewBox=f"0 0 {_WIDTH:.0f} 1",
        preserveAspectRatio="none",
        role="img",
        aria_labelledby=title,
    )


def parts_of(run: RunRecord) -> Mapping[str, int]:
    """Entities of a run by outcome."""
    done = {"covered": run.covered, "failed": run.failed, "skipped": run.skipped}
    if run.finished_at is not None:
        return done
    return done | {"to come": max(0, run.entities - run.covered - run.failed)}


def figures(run: RunRecord) -> str:
    """Counts of the entities by outcome, in words: `1,204 covered, 3 failed`."""
    parts = {name: count for name, count in parts_of(run).items() if count}
    return ", ".join(f"{count:,} {name}" for name, count in parts.items()) or "no entities"


_WIDTH: Final = 400.0
_LEAST: Final = 10.0
_FILLS: Final[Mapping[str, str]] = {
    "covered": "fill-good",
    "failed": "fill-bad",
    "skipped": "fill-unknown",
    "to come": "chart-track",
}
