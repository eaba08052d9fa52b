"""Data source pages: the list, each source with its actions, and its runs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup

from factbook.audit.trail import About, AuditEntry
from factbook.auth.permissions import CATALOG_READ, SOURCE_READ, SOURCE_RUN, SOURCE_WRITE
from factbook.catalog import people_trust
from factbook.catalog import ref as refs
from factbook.catalog.filters import EntityFilter
from factbook.clock import DAY
from factbook.collection import run_start
from factbook.collection.run_start import batch_targets
from factbook.datasources import define
from factbook.datasources.custom import yaml_text
from factbook.datasources.custom.definition import OWNED_TYPES
from factbook.datasources.define import ConnectionDetail, OwnedSource
from factbook.datasources.registry import SourceSnapshot
from factbook.datasources.stores import StoredSource, source_store
from factbook.errors import ConflictError, InputError, NotFoundError, no_such
from factbook.facts import freshness, schema, store
from factbook.facts.datasource import DataSource, Duration, Lifecycle
from factbook.facts.store import Failures
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.integrations.vendors import VENDORS
from factbook.scheduling import runs
from factbook.scheduling.runs import CountedGap, GivenUpBatch, RunRecord, SourceHealth
from factbook.storage import Write
from factbook.web import formats
from factbook.web.charts import make_element
from factbook.web.formats import (
    Reason,
    count_noun,
    describe_reason,
    format_share,
    format_word,
    make_commands,
    quote_segment,
    quote_shell_word,
)
from factbook.web.pages import PageContext, PageRoute
from factbook.web.sign_in import choose_safe_path

# The tool that returns the facts of each shape.
METRIC_TOOLS: Final[Mapping[str, str]] = {
    "codehost": "get-codehost-metrics",
    "security": "get-security-metrics",
    "incident": "get-incident-metrics",
    "observability": "get-observability-metrics",
    "repository": "get-repository-info",
}
COMPLIANCE_TOOL: Final = "get-entity-compliance"
SOURCE_TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "entity": (
        "The entity itself",
        "Facts are taken from the entity itself. No other system is called.",
    ),
    "http": (
        "An address over HTTP",
        "A connection sends a request for each entity, and facts are taken from the response.",
    ),
    "repository-file": (
        "A file of the repository",
        "Facts are taken from one file of the repository behind the entity, such as package.json.",
    ),
    "repository-directory": (
        "The files of a repository",
        "Facts are taken from the list of files below a directory of the entity's repository.",
    ),
    "push": (
        "Pushed facts",
        "Nothing is collected: a script or a pipeline sends the facts.",
    ),
}
_TOOLS_BY_FACT: Final = {
    f"{shape.name}.{fact.name}": METRIC_TOOLS[shape.name]
    for shape in schema.SHAPES
    if shape.name in METRIC_TOOLS
    for fact in schema.shape_facts(shape)
}
_CATALOG_SOURCES: Final = frozenset({"entity-metadata", "entity-ownership", "techdocs"})
_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NUMBER: Final = re.compile(r"\d{1,2}")
_STEP: Final = re.compile(r"\*/(\d{1,2})")


def find_metric_tool(source: DataSource, fact: str) -> str | None:
    """Find the tool that returns a fact of the source, if any."""
    if source.id in _CATALOG_SOURCES:
        return COMPLIANCE_TOOL
    return _TOOLS_BY_FACT.get(fact)


def describe_cadence(line: str) -> str:
    """Describe a cron line, such as `every 6 hours`; complex lines become `cron LINE`."""
    minute, hour, day, month, weekday = line.split()
    if (day, month) != ("*", "*"):
        return f"cron {line}"
    if step := _STEP.fullmatch(minute):
        return (
            _describe_step(int(step[1]), "minute")
            if (hour, weekday) == ("*", "*")
            else f"cron {line}"
        )
    if minute == "*":
        return "every minute" if (hour, weekday) == ("*", "*") else f"cron {line}"
    if not _NUMBER.fullmatch(minute):
        return f"cron {line}"
    return _describe_hour(int(minute), hour, weekday) or f"cron {line}"


def _describe_hour(minute: int, hour: str, weekday: str) -> str | None:
    if weekday == "*" and hour == "*":
        return "every hour"
    if weekday == "*" and (step := _STEP.fullmatch(hour)):
        return _describe_step(int(step[1]), "hour")
    if not _NUMBER.fullmatch(hour):
        return None
    time = f"at {int(hour):02d}:{minute:02d} UTC"
    if weekday == "*":
        return f"every day {time}"
    if weekday.lower() in {"1-5", "mon-fri"}:
        return f"on weekdays {time}"
    return f"every {_WEEKDAYS[int(weekday) % 7]} {time}" if weekday in set("01234567") else None


def _describe_step(count: int, unit: str) -> str:
    return f"every {unit}" if count == 1 else f"every {count} {unit}s"


def describe_duration(given: Duration) -> str:
    """Format a duration, such as `1 hour, 30 minutes`."""
    return ", ".join(count_noun(count, unit.removesuffix("s")) for unit, count in given.items())


def describe_lifecycle(given: Lifecycle | None) -> str:
    """Describe how much history is kept."""
    if given is None:
        return "all of it"
    if given.max_items is not None:
        return f"the last {given.max_items:,} of each entity"
    return describe_duration(given.time_to_live or {})


def describe_conditions(entity_filter: EntityFilter | None) -> list[list[tuple[str, str]]]:
    """Describe a filter as alternatives, each a list of (path, condition)."""
    alternatives = []
    for alternative in entity_filter or ():
        conditions = []
        for path, expected in alternative.items():
            if isinstance(expected, dict):
                conditions.append((path, "is there" if expected.get("exists") else "is not there"))
                continue
            values = expected if isinstance(expected, list) else [expected]
            words = [str(each).lower() if isinstance(each, bool) else str(each) for each in values]
            conditions.append((path, f"is {' or '.join(words)}"))
        alternatives.append(conditions)
    return alternatives


Way = Literal["collected", "pushed", "read"]


class Doing(NamedTuple):
    """A state in words, with its kind for `parts.state`; problems rank lowest."""

    words: str
    kind: Literal["good", "warn", "bad", "busy", ""]
    rank: int

    @property
    def is_problem(self) -> bool:
        """True if facts are missing or late."""
        return self.kind in ("bad", "warn")


class SourceRow(NamedTuple):
    """A data source and its state; `way` is how its facts arrive.

    `run_words` describe the current run: running, or waiting for a rate limit.
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
        """The current run of all entities."""
        return self.health and self.health.running

    @property
    def coverage(self) -> str | None:
        """Percentage of entities covered by the last run."""
        last = self.last
        whole = last and last.covered + last.failed + last.skipped
        return format_share(last.covered, whole) if last and whole else None


def make_source_row(
    known: SourceSnapshot,
    source_id: str,
    health_: SourceHealth | None,
    pushed_at: int | None,
    now: int,
) -> SourceRow:
    """Build the row for a source, even if its definition is unusable."""
    source = known.sources.get(source_id) or DataSource(id=source_id, title=source_id, draft=True)
    problem = known.problems.get(source_id)
    definition = known.definitions.get(source_id)
    way: Way = "collected" if source_id in known.integrations or definition else "read"
    if definition is not None and definition.type == "push":
        way = "pushed"
    return SourceRow(
        source,
        source_id not in known.definitions and problem is None,
        way,
        _find_doing(source, way, health_, problem, pushed_at, now),
        health_,
        problem,
        freshness.next_run_time(source, health_, now) if source_id in known.integrations else None,
        pushed_at,
        (health_.running.wait(now) if health_ and health_.running else "") or "running",
    )


def _find_doing(
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
    if (
        found is not None
        and found.last is not None
        and not any(count_outcomes(found.last).values())
    ):
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


def draw_run_bar(run: RunRecord, place: str) -> Markup:
    """Draw the entities of a run as one bar: covered, failed, skipped and pending.

    The bar fills its container. `place` keeps element ids unique if a page shows the bar twice.
    """
    shown = {name: count for name, count in count_outcomes(run).items() if count} or {"to come": 1}
    whole, room, x = sum(shown.values()), _BAR_WIDTH - _LEAST_PART * len(shown), 0.0
    shapes = []
    for name, count in shown.items():
        # Keep even the smallest part visible.
        width = _LEAST_PART + room * count / whole
        shapes.append(make_element("rect", x=x, y=0, width=width, height=1, class_=_FILLS[name]))
        x += width
    title = f"{place}-{run.id}"
    return make_element(
        "svg",
        make_element("title", f"Entities of the run: {describe_outcomes(run)}", id=title),
        *shapes,
        class_="run-bar",
        viewBox=f"0 0 {_BAR_WIDTH:.0f} 1",
        preserveAspectRatio="none",
        role="img",
        aria_labelledby=title,
    )


def count_outcomes(run: RunRecord) -> Mapping[str, int]:
    """Count the entities of a run by outcome."""
    done = {"covered": run.covered, "failed": run.failed, "skipped": run.skipped}
    if run.finished_at is not None:
        return done
    return done | {"to come": max(0, run.entities - run.covered - run.failed)}


def describe_outcomes(run: RunRecord) -> str:
    """Describe the outcomes of a run, such as `1,204 covered, 3 failed`."""
    parts = {name: count for name, count in count_outcomes(run).items() if count}
    return ", ".join(f"{count:,} {name}" for name, count in parts.items()) or "no entities"


_BAR_WIDTH: Final = 400.0
_LEAST_PART: Final = 10.0
_FILLS: Final[Mapping[str, str]] = {
    "covered": "fill-good",
    "failed": "fill-bad",
    "skipped": "fill-unknown",
    "to come": "chart-track",
}


def guard_recorded_write(
    visit: PageContext, source_id: str, about: AuditEntry | About, needed: str = SOURCE_WRITE
) -> Write:
    """Transaction runner with an audit record; checks ownership for people limited to their own."""
    if not visit.own_only:
        return visit.writing(about)
    owned = _make_owned_source(visit, source_id, needed)
    return owned.guarding(visit.writing(owned.told(about)))


def guard_write(visit: PageContext, source_id: str) -> Write:
    """Transaction runner with no audit record; checks ownership for people limited to their own."""
    write = visit.state.database.write
    return _make_owned_source(visit, source_id).guarding(write) if visit.own_only else write


async def may_manage_source(visit: PageContext, stored: StoredSource | None, needed: str) -> bool:
    """True if the person has the permission, or one of their groups owns the source."""
    if visit.may(needed):
        return True
    if stored is None or not visit.may_own(needed):
        return False
    person, trust = visit.person.ref, visit.state.trust
    return await define.is_own_source(visit.state.database, stored, person, trust, needed)


async def list_person_groups(visit: PageContext) -> frozenset[str]:
    """List the groups of the person."""
    return await people_trust.read_groups(visit.state.database, visit.person.ref, visit.state.trust)


def list_source_types(visit: PageContext) -> Mapping[str, tuple[str, str]]:
    """List the source types that the person can create, each with a title and description."""
    if not visit.own_only:
        return SOURCE_TYPES
    return {name: about for name, about in SOURCE_TYPES.items() if name in OWNED_TYPES}


async def list_usable_connections(visit: PageContext) -> Sequence[ConnectionDetail]:
    """List the connections that the person can use in a source."""
    state = visit.state
    if visit.own_only:
        return await define.list_shared_connections(
            state.database, state.registry, visit.person.ref, state.trust
        )
    return await define.list_connections(state.database, state.registry)


def _make_owned_source(
    visit: PageContext, source_id: str, needed: str = SOURCE_WRITE
) -> OwnedSource:
    configured = visit.state.registry.configured
    return OwnedSource(source_id, visit.person.ref, visit.state.trust, configured, needed)


SOURCES_PATH: Final = "/data-sources"
_SOURCES_ON_PAGE: Final = 50

_SOURCE_FILTERS: Final = (
    ("", "All"),
    ("problems", "With problems"),
    ("builtin", "Built-in"),
    ("custom", "Custom"),
)


class _SourceCounts(NamedTuple):
    all: int
    builtin: int
    problems: int
    running: int
    drafts: int


async def show_sources(visit: PageContext) -> Reply:
    """Show all data sources and their states."""
    rows = await list_source_rows(visit)
    query, shown = visit.query("q"), visit.query("show")
    found = [row for row in rows if _matches_source_filter(row, query.casefold(), shown)]
    number = visit.page_number()
    page = found[(number - 1) * _SOURCES_ON_PAGE : number * _SOURCES_ON_PAGE]
    asked = {"q": query, "show": shown}
    configured = {row.source.handler.builtin_id for row in rows if row.source.handler}
    return visit.page(
        "data-sources.html",
        rows=page,
        counts=_count_sources(rows),
        found=len(found),
        first=(number - 1) * _SOURCES_ON_PAGE + 1,
        before=_make_sources_address(asked, number - 1) if number > 1 else None,
        after=_make_sources_address(asked, number + 1)
        if number * _SOURCES_ON_PAGE < len(found)
        else None,
        query=query,
        show=shown if shown in dict(_SOURCE_FILTERS) else "",
        choices=_SOURCE_FILTERS,
        vendors=[vendor for vendor in VENDORS if vendor.id not in configured],
        collects=any(row.way == "collected" and row.is_builtin for row in rows),
        may_write=visit.may(SOURCE_WRITE) or visit.may_own(SOURCE_WRITE),
        cadence=describe_cadence,
        bar=draw_run_bar,
        figures=describe_outcomes,
    )


async def list_source_rows(visit: PageContext) -> list[SourceRow]:
    """List all data sources, problems first."""
    state, now = visit.state, visit.now
    known = await state.registry.latest()
    health = await runs.fetch_health(state.database)
    times = await store.find_last_written(state.database, known.pushed)
    ids = dict.fromkeys([*known.sources, *known.problems])
    rows = [make_source_row(known, id_, health.get(id_), times.get(id_), now) for id_ in ids]
    return sorted(rows, key=lambda row: (row.doing.rank, row.source.title.casefold()))


def _matches_source_filter(row: SourceRow, text: str, shown: str) -> bool:
    if text not in row.source.id.casefold() and text not in row.source.title.casefold():
        return False
    match shown:
        case "problems":
            return row.doing.is_problem
        case "builtin" | "custom":
            return row.is_builtin is (shown == "builtin")
    return True


def _count_sources(rows: Sequence[SourceRow]) -> _SourceCounts:
    return _SourceCounts(
        all=len(rows),
        builtin=sum(row.is_builtin for row in rows),
        problems=sum(row.doing.is_problem for row in rows),
        running=sum(row.running is not None for row in rows),
        drafts=sum(row.source.draft for row in rows),
    )


def _make_sources_address(asked: dict[str, str], number: int) -> str:
    given = {name: value for name, value in asked.items() if value}
    return f"{SOURCES_PATH}?{urlencode({**given, 'page': number})}"


DATA_SOURCES: Sequence[PageRoute] = (PageRoute("GET", SOURCES_PATH, show_sources, (SOURCE_READ,)),)


_SOURCE_PATH: Final = "/data-sources/{id}"
_RUNS: Final = 10
_FAILURES: Final = 10
_FAILURES_OF_A_PAGE: Final = 100
_VERSIONS: Final = 10
_PUSHES: Final = 10
_EXAMPLES: Final = 3  # facts per example command, and values shown per push
_EXAMPLE_VALUES: Final[Mapping[str, Any]] = {
    "integer": 1,
    "float": 1.5,
    "boolean": True,
    "datetime": "2026-11-21T12:00:00Z",
    "set": ["one", "two"],
    "object": {"key": "value"},
}
_ANY_ENTITY: Final = "component:default/NAME"
_SUGGESTIONS: Final = 8
_SOON: Final = 14 * DAY
_VENDORS: Final = {vendor.id: vendor.title for vendor in VENDORS}
_DIGITS: Final = 19  # ids have fewer digits


class EntityPush(NamedTuple):
    """A push for one entity: the first formatted facts, and how many more there are."""

    ref: str
    written_at: int
    facts: list[tuple[str, str]]
    more: int


class Pushes(NamedTuple):
    """The pushes section: the latest pushes, newest first, and example commands."""

    last: list[EntityPush]
    lines: dict[str, str]


class SourceView(NamedTuple):
    """The source of a page; `stored` is None for a built-in source."""

    row: SourceRow
    stored: StoredSource | None
    known: SourceSnapshot

    @property
    def id(self) -> str:
        """The source id."""
        return self.row.source.id

    @property
    def path(self) -> str:
        """Path of the source page."""
        return make_source_path(self.id)


def make_source_path(source_id: str) -> str:
    """Path of the page for a source id."""
    return f"/data-sources/{quote_segment(source_id)}"


async def find_source_view(visit: PageContext) -> SourceView:
    """Find the source in the URL; raises NotFoundError."""
    state, source_id = visit.state, visit.request.parameter("id")
    known = await state.registry.latest()
    stored = None
    if source_id not in known.sources and source_id not in known.problems:
        raise no_such("data source", source_id, known.sources)
    times: dict[str, int] = {}
    if source_id not in state.sources:
        stored = await source_store.one(state.database, source_id)
    if source_id in known.pushed:
        times = await store.find_last_written(state.database, [source_id])
    health = await runs.fetch_source_health(state.database, source_id)
    row = make_source_row(known, source_id, health, times.get(source_id), visit.now)
    return SourceView(row, stored, known)


async def show_source_page(visit: PageContext) -> Reply:
    """Show the source page."""
    return await render_source(visit, await find_source_view(visit))


async def show_failures(visit: PageContext) -> Reply:
    """Show entities that failed in the last run, scanning a few thousand rows per page."""
    found = await find_source_view(visit)
    place = visit.query_number("after", 0)
    return visit.page(
        "data-source-failures.html",
        subject=found,
        failures=await _list_failures(visit, found, place, _FAILURES_OF_A_PAGE),
        first=place == 0,
        scanned=store.FAILURES_SCANNED,
    )


async def remove_source(visit: PageContext) -> Reply:
    """Delete a source and all its facts."""
    state, found = visit.state, await find_source_view(visit)
    entry = AuditEntry("data-source.delete", found.id)
    await define.delete_source(
        state.database,
        state.registry,
        found.id,
        actor=visit.person.ref,
        write=guard_recorded_write(visit, found.id, entry),
        drop=guard_write(visit, found.id),
    )
    return visit.redirect("/data-sources", f"{found.row.source.title} was deleted.")


async def render_source(
    visit: PageContext, found: SourceView, status: int = 200, *, entity: str = "", problem: str = ""
) -> Reply:
    """Render the source page; `problem` says why a run of `entity`, or of all, couldn't start."""
    database, source = visit.state.database, found.row.source
    is_pushed = found.row.way == "pushed" and not source.draft
    is_collected = found.id in found.known.integrations
    can_run = is_collected and await may_manage_source(visit, found.stored, SOURCE_RUN)
    may_write = await may_manage_source(visit, found.stored, SOURCE_WRITE)
    last = found.row.last
    has_failures = bool(last and last.failed and visit.may(CATALOG_READ))
    versions = await source_store.versions(database, found.id) if found.stored else []
    groups: dict[str | None, list[Any]] = {}
    for fact in source.schema:
        groups.setdefault(find_metric_tool(source, fact.name), []).append(fact)
    definitions = {}
    if found.stored is not None and may_write:
        definitions = {"Published": found.stored.published, "Draft": found.stored.draft}
    return visit.page(
        "data-source.html",
        status,
        subject=found,
        runs=await runs.list_recent_runs(database, found.id, _RUNS + 1),
        most_runs=_RUNS,
        failures=await _list_failures(visit, found, 0, _FAILURES) if has_failures else None,
        stored=await store.count_stored(database, found.id) if found.row.way == "pushed" else None,
        counted=store.MOST_COUNTED,
        pushes=await _describe_pushes(visit, source) if is_pushed else None,
        soon=_SOON,
        vendors=_VENDORS,
        groups=list(groups.items()),
        versions=versions[:_VERSIONS],
        suggestions=await store.list_matching(database, source, _SUGGESTIONS) if can_run else [],
        can_run=can_run,
        may_see=visit.may(CATALOG_READ),
        may_write=found.stored is not None and may_write,
        texts={
            name: yaml_text.write_yaml(document)
            for name, document in definitions.items()
            if document is not None
        },
        entity=entity,
        problem=problem,
        source_types=SOURCE_TYPES,
        cadence=describe_cadence,
        duration=describe_duration,
        lifecycle=describe_lifecycle,
        conditions=describe_conditions,
        bar=draw_run_bar,
        figures=describe_outcomes,
    )


async def _list_failures(visit: PageContext, found: SourceView, after: int, limit: int) -> Failures:
    last = found.row.last
    if last is None:
        return Failures([], None)
    since = last.started_at
    return await store.page_failures(visit.state.database, found.id, since, after, limit)


async def _describe_pushes(visit: PageContext, source: DataSource) -> Pushes:
    """The latest pushes, if the person may see entities, and example commands."""
    database = visit.state.database
    rows = await store.list_pushed(database, source.id, _PUSHES) if visit.may(CATALOG_READ) else []
    about = await store.list_matching(database, source, 1)
    return Pushes(
        [_make_entity_push(source, *row) for row in rows],
        _make_push_commands(visit, source, *about),
    )


def _make_entity_push(source: DataSource, ref: str, written_at: int, text: str) -> EntityPush:
    values: dict[str, Any] = msgspec.json.decode(text)
    known = [fact for fact in source.schema if fact.name in values]
    shown = [
        (formats.get_fact_title(fact), formats.format_fact(fact, values[fact.name]))
        for fact in known
    ]
    return EntityPush(ref, written_at, shown[:_EXAMPLES], len(values) - len(shown[:_EXAMPLES]))


def _make_push_commands(
    visit: PageContext, source: DataSource, ref: str = _ANY_ENTITY
) -> dict[str, str]:
    """Example push commands by program."""
    facts = {
        fact.name: _EXAMPLE_VALUES.get(fact.type, "text") for fact in source.schema[:_EXAMPLES]
    }
    pairs = " ".join(
        quote_shell_word(f"{name}={format_word(value)}") for name, value in facts.items()
    )
    item = {"entity": ref, "facts": facts}
    body = msgspec.json.encode({"items": [item]}).decode()
    return make_commands(
        visit.server,
        f"push-facts {quote_shell_word(source.id)} --entity {quote_shell_word(ref)} {pairs}",
        quote_shell_word(f"{visit.server}/api/tech-insights/v1/facts/{source.id}"),
        f"-d {quote_shell_word(body)}",
    )


DATA_SOURCE: Sequence[PageRoute] = (
    PageRoute("GET", _SOURCE_PATH, show_source_page, (SOURCE_READ,)),
    PageRoute("GET", f"{_SOURCE_PATH}/failures", show_failures, (SOURCE_READ, CATALOG_READ)),
    PageRoute("POST", f"{_SOURCE_PATH}/delete", remove_source, (SOURCE_WRITE,), owned=True),
)


_RUNS_PATH: Final = "/data-sources/{id}/runs"
_MOST_RUNS: Final = 2 * runs.RUNS_KEPT
# Milliseconds without results before the page explains a stuck run.
_PATIENCE: Final = 15_000

# Gap kinds in display order.
GAP_KINDS: Final = {
    "passing": "Not read this time; the last values are kept for three cadences",
    "final": "Not available from the vendor",
    "skipped": "Skipped: the entity does not say where to look",
}
_MOST_PLACES: Final = 6


class ReasonOfGaps(NamedTuple):
    """A reason for gaps, its places, and the highest number of entities affected at one place."""

    kind: str
    reason: Reason
    entities: int
    places: list[str]
    more: int


class GivenUpRow(NamedTuple):
    """An abandoned batch, with its entity count and targets."""

    batch: GivenUpBatch
    entities: int
    targets: list[str]
    more: int


async def show_runs(visit: PageContext) -> Reply:
    """Show the latest runs of a source."""
    source, database = await find_source_view(visit), visit.state.database
    recent = await runs.list_recent_runs(database, source.id, _MOST_RUNS)
    given_up = []
    for batch in await runs.list_given_up_batches(database, source.id):
        targets = batch_targets(batch.work)
        places = list(targets)[:_MOST_PLACES] if visit.may(CATALOG_READ) else []
        count, left = sum(map(len, targets.values())), len(targets) - len(places)
        given_up.append(GivenUpRow(batch, count, places, left))
    return visit.page(
        "data-source-runs.html",
        subject=source,
        runs=recent,
        given_up=given_up,
        may_run=await may_manage_source(visit, source.stored, SOURCE_RUN),
        bar=draw_run_bar,
        figures=describe_outcomes,
    )


async def retry_batches(visit: PageContext) -> Reply:
    """Retry the abandoned batches in a new run, and redirect to the run page."""
    found, state = await find_source_view(visit), visit.state
    try:
        run_id = await run_start.retry_given_up(
            state.database,
            state.registry,
            found.id,
            actor=visit.person.ref,
            clock=state.clock,
            write=guard_recorded_write(
                visit, found.id, audit.make_run_entry(found.id, None), SOURCE_RUN
            ),
            tracer=state.tracer,
        )
    except ConflictError as error:
        return visit.redirect(f"{found.path}/runs", error.message)
    return visit.redirect(f"{found.path}/runs/{run_id}")


async def begin_source_run(visit: PageContext) -> Reply:
    """Start a run of a source, for one entity or all, and redirect to the run page.

    Redirects to `next` instead if the form has a safe local path, and to the current run if one
    for all entities is already in progress.
    """
    found, sent = await find_source_view(visit), visit.sent
    entity, back = sent.one("entity"), sent.one("next")
    try:
        run = await _start_run(visit, found.id, entity)
    except (InputError, ConflictError, NotFoundError) as error:
        known = await runs.fetch_source_health(visit.state.database, found.id)
        under_way = known and known.running
        if under_way and not entity:
            notice = "A run was already in progress; this is its page."
            return visit.redirect(f"{found.path}/runs/{under_way.id}", notice)
        return await render_source(visit, found, error.status, entity=entity, problem=error.message)
    if back and choose_safe_path(back) == back:
        return visit.redirect(back, f"{found.row.source.title} is being collected now.")
    return visit.redirect(f"{found.path}/runs/{run.id}")


async def show_run(visit: PageContext) -> Reply:
    """Show the progress or result of a run."""
    found = await find_source_view(visit)
    text = visit.request.parameter("run")
    is_number = text.isascii() and text.isdigit() and len(text) < _DIGITS
    run = await runs.fetch_run(visit.state.database, int(text)) if is_number else None
    if run is None or run.source_id != found.id:
        raise NotFoundError(f"There is no such run of {found.id}; old runs are removed.")
    last = found.row.last
    has_failures = last is not None and last.id == run.id and run.failed > 0
    elapsed = (visit.now if run.finished_at is None else run.finished_at) - run.started_at
    is_waiting = run.finished_at is None and not (run.covered or run.failed)
    return visit.page(
        "data-source-run.html",
        subject=found,
        run=run,
        elapsed=max(0, elapsed),
        # Failed entities are stored only for the last run of all entities.
        failures=f"{found.path}/failures" if has_failures and visit.may(CATALOG_READ) else "",
        is_stuck=is_waiting and elapsed >= _PATIENCE,
        parts_of=count_outcomes(run),
        bar=draw_run_bar,
        figures=describe_outcomes,
        gaps=group_gaps(await runs.list_gaps(visit.state.database, run.id)),
    )


async def _start_run(visit: PageContext, source_id: str, entity: str) -> RunRecord:
    state = visit.state
    ref = str(refs.parse_ref(entity, kind="component")) if entity else None
    return await run_start.run_now(
        state.database,
        state.registry,
        source_id,
        ref,
        actor=visit.person.ref,
        clock=state.clock,
        write=guard_recorded_write(
            visit, source_id, audit.make_run_entry(source_id, ref), SOURCE_RUN
        ),
        tracer=state.tracer,
    )


def group_gaps(gaps: Iterable[CountedGap]) -> list[ReasonOfGaps]:
    """Group gaps by kind and reason: transient first, then by number of entities."""
    found: dict[tuple[str, str], list[CountedGap]] = {}
    for gap in gaps:
        found.setdefault((gap.kind, gap.reason), []).append(gap)
    rows = []
    for (kind, reason), same in found.items():
        places = [gap.place for gap in same if gap.place]
        most, more = max(gap.entities for gap in same), len(places[_MOST_PLACES:])
        rows.append(ReasonOfGaps(kind, describe_reason(reason), most, places[:_MOST_PLACES], more))
    order = list(GAP_KINDS)
    return sorted(rows, key=lambda row: (order.index(row.kind), -row.entities, row.places))


SOURCE_RUNS: Sequence[PageRoute] = (
    PageRoute("GET", _RUNS_PATH, show_runs, (SOURCE_READ,)),
    PageRoute("POST", _RUNS_PATH, begin_source_run, (SOURCE_RUN,), owned=True),
    PageRoute("POST", "/data-sources/{id}/given-up", retry_batches, (SOURCE_RUN,), owned=True),
    PageRoute("GET", f"{_RUNS_PATH}/{{run}}", show_run, (SOURCE_READ,)),
)
