"""Page of one data source: its description, its state, and the actions on it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.audit.trail import AuditEntry
from factbook.auth.permissions import CATALOG_READ, SOURCE_READ, SOURCE_RUN, SOURCE_WRITE
from factbook.clock import DAY
from factbook.datasources import define
from factbook.datasources.custom import yaml_text
from factbook.datasources.registry import SourceSnapshot
from factbook.datasources.stores import StoredSource, source_store
from factbook.errors import no_such
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.store import Failures
from factbook.http.requests import Reply
from factbook.integrations.vendors import VENDORS
from factbook.scheduling import runs
from factbook.web.data_sources import ownership, source_labels, table_rows
from factbook.web.data_sources.table_rows import SourceRow
from factbook.web.site import fact_display
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.formats import commands, quoted, segment, word_of
from factbook.web.site.page_context import PageContext

_PATH: Final = "/data-sources/{id}"
_RUNS: Final = 10
_FAILURES: Final = 10
_FAILURES_OF_A_PAGE: Final = 100
_VERSIONS: Final = 10
_PUSHES: Final = 10
_EXAMPLES: Final = 3  # facts of an example, and of a push that are shown with their values
_VALUES: Final[Mapping[str, Any]] = {
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
_DIGITS: Final = 19  # more than those of any id


class EntityPush(NamedTuple):
    """A push about one entity: some formatted facts, and the number of further ones."""

    ref: str
    written_at: int
    facts: list[tuple[str, str]]
    more: int


class Pushes(NamedTuple):
    """Section of the page on pushes: the last ones, newest first, and example commands."""

    last: list[EntityPush]
    lines: dict[str, str]


class SourceView(NamedTuple):
    """The source of a page; `stored` is the definition of a custom one."""

    row: SourceRow
    stored: StoredSource | None
    known: SourceSnapshot

    @property
    def id(self) -> str:
        """Id of the source."""
        return self.row.source.id

    @property
    def path(self) -> str:
        """Path of its page."""
        return path_of(self.id)


def path_of(source_id: str) -> str:
    """Path of a source's page."""
    return f"/data-sources/{segment(source_id)}"


async def subject(visit: PageContext) -> SourceView:
    """Source in the address; raises NotFoundError."""
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
    row = table_rows.row(known, source_id, health, times.get(source_id), visit.now)
    return SourceView(row, stored, known)


async def show(visit: PageContext) -> Reply:
    """Page of a source."""
    return await page(visit, await subject(visit))


async def failed(visit: PageContext) -> Reply:
    """Page of the entities without facts from the last run, a few thousand rows at a time."""
    found = await subject(visit)
    after = visit.query("after", "0")
    place = int(after) if after.isascii() and after.isdigit() and len(after) < _DIGITS else 0
    return visit.page(
        "data-source-failures.html",
        subject=found,
        failures=await _failures(visit, found, place, _FAILURES_OF_A_PAGE),
        first=place == 0,
        scanned=store.FAILURES_SCANNED,
    )


async def delete(visit: PageContext) -> Reply:
    """Remove a source with all its facts."""
    state, found = visit.state, await subject(visit)
    entry = AuditEntry("data-source.delete", found.id)
    await define.delete_source(
        state.database,
        state.registry,
        found.id,
        actor=visit.person.ref,
        write=ownership.writing(visit, found.id, entry),
        drop=ownership.guarding(visit, found.id),
    )
    return visit.redirect("/data-sources", f"{found.row.source.title} was deleted.")


async def page(
    visit: PageContext, found: SourceView, status: int = 200, *, entity: str = "", problem: str = ""
) -> Reply:
    """The page; `problem` is the reason that a run of `entity` or of everything could not begin."""
    database, source = visit.state.database, found.row.source
    is_pushed = found.row.way == "pushed" and not source.draft
    is_collected = found.id in found.known.integrations
    can_run = is_collected and await ownership.may(visit, found.stored, SOURCE_RUN)
    may_write = await ownership.may(visit, found.stored, SOURCE_WRITE)
    last = found.row.last
    has_failures = bool(last and last.failed and visit.may(CATALOG_READ))
    versions = await source_store.versions(database, found.id) if found.stored else []
    return visit.page(
        "data-source.html",
        status,
        subject=found,
        runs=await runs.list_recent_runs(database, found.id, _RUNS + 1),
        most_runs=_RUNS,
        failures=await _failures(visit, found, 0, _FAILURES) if has_failures else None,
        stored=await store.count_stored(database, found.id) if found.row.way == "pushed" else None,
        counted=store.MOST_COUNTED,
        pushes=await _pushes(visit, source) if is_pushed else None,
        soon=_SOON,
        vendors=_VENDORS,
        groups=_groups(found),
        versions=versions[:_VERSIONS],
        suggestions=await store.list_matching(database, source, _SUGGESTIONS) if can_run else [],
        can_run=can_run,
        may_see=visit.may(CATALOG_READ),
        may_write=found.stored is not None and may_write,
        texts=_texts(found.stored) if may_write else {},
        entity=entity,
        problem=problem,
        words=source_labels,
        bar=table_rows.bar,
        figures=table_rows.figures,
    )


async def _failures(visit: PageContext, found: SourceView, after: int, limit: int) -> Failures:
    last = found.row.last
    if last is None:
        return Failures([], None)
    since = last.started_at
    return await store.page_failures(visit.state.database, found.id, since, after, limit)


def _groups(found: SourceView) -> list[tuple[str | None, list[Any]]]:
    """Facts by the tool that returns them."""
    groups: dict[str | None, list[Any]] = {}
    for fact in found.row.source.schema:
        groups.setdefault(source_labels.tool(found.row.source, fact.name), []).append(fact)
    return list(groups.items())


def _texts(stored: StoredSource | None) -> Mapping[str, str]:
    """Definitions of a custom source, by their state."""
    if stored is None:
        return {}
    given = {"Published": stored.published, "Draft": stored.draft}
    return {name: yaml_text.write_yaml(text) for name, text in given.items() if text is not None}


async def _pushes(visit: PageContext, source: DataSource) -> Pushes:
    """Last pushes, for people who may see the entities, and examples by the schema."""
    database = visit.state.database
    rows = await store.list_pushed(database, source.id, _PUSHES) if visit.may(CATALOG_READ) else []
    about = await store.list_matching(database, source, 1)
    return Pushes([_push(source, *row) for row in rows], _lines(visit, source, *about))


def _push(source: DataSource, ref: str, written_at: int, text: str) -> EntityPush:
    values: dict[str, Any] = msgspec.json.decode(text)
    known = [fact for fact in source.schema if fact.name in values]
    shown = [
        (fact_display.title(fact), fact_display.in_words(fact, values[fact.name])) for fact in known
    ]
    return EntityPush(ref, written_at, shown[:_EXAMPLES], len(values) - len(shown[:_EXAMPLES]))


def _lines(visit: PageContext, source: DataSource, ref: str = _ANY_ENTITY) -> dict[str, str]:
    """Commands that push facts, by program."""
    facts = {fact.name: _VALUES.get(fact.type, "text") for fact in source.schema[:_EXAMPLES]}
    pairs = " ".join(quoted(f"{name}={word_of(value)}") for name, value in facts.items())
    item = {"entity": ref, "facts": facts}
    body = msgspec.json.encode({"items": [item]}).decode()
    return commands(
        visit.server,
        f"push-facts {quoted(source.id)} --entity {quoted(ref)} {pairs}",
        quoted(f"{visit.server}/api/tech-insights/v1/facts/{source.id}"),
        f"-d {quoted(body)}",
    )


DATA_SOURCE: Sequence[PageRoute] = (
    PageRoute("GET", _PATH, show, (SOURCE_READ,)),
    PageRoute("GET", f"{_PATH}/failures", failed, (SOURCE_READ, CATALOG_READ)),
    PageRoute("POST", f"{_PATH}/delete", delete, (SOURCE_WRITE,), owned=True),
)
