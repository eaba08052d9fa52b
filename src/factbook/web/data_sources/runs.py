"""Runs of a data source: starting, following and listing them."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ, SOURCE_RUN
from factbook.catalog import ref as refs
from factbook.collection import run_start
from factbook.collection.run_start import batch_targets
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.scheduling import runs
from factbook.scheduling.runs import CountedGap, GivenUpBatch, RunRecord
from factbook.web.data_sources import detail, ownership, table_rows
from factbook.web.sign_in.password_sign_in import safe_path
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.fact_display import Reason, plain
from factbook.web.site.page_context import PageContext

_PATH: Final = "/data-sources/{id}/runs"
_MOST: Final = 2 * runs.RUNS_KEPT
_DIGITS: Final = 19  # more than those of any id
# A run of which so long nothing came is explained.
_PATIENCE: Final = 15_000

# The kinds of gaps of a run, in the order in which they are shown.
KINDS: Final = {
    "passing": "Could not be asked for; the last values are kept for three cadences",
    "final": "The vendor does not show it",
    "skipped": "Skipped: nothing says where to look",
}
_MOST_PLACES: Final = 6


class ReasonOfGaps(NamedTuple):
    """A reason, the highest number of entities that it affects at one place, and the places."""

    kind: str
    reason: Reason
    entities: int
    places: list[str]
    more: int


class GivenUpRow(NamedTuple):
    """A batch that was given up: the number of its entities, and what they point to."""

    batch: GivenUpBatch
    entities: int
    targets: list[str]
    more: int


async def listed(visit: PageContext) -> Reply:
    """Page of the last runs of a source."""
    found, database = await detail.subject(visit), visit.state.database
    return visit.page(
        "data-source-runs.html",
        subject=found,
        runs=await runs.list_recent_runs(database, found.id, _MOST),
        given_up=[
            _given_up(visit, one) for one in await runs.list_given_up_batches(database, found.id)
        ],
        may_run=await ownership.may(visit, found.stored, SOURCE_RUN),
        bar=table_rows.bar,
        figures=table_rows.figures,
    )


async def retry(visit: PageContext) -> Reply:
    """Start a run of what was given up, and redirect to its page."""
    found, state = await detail.subject(visit), visit.state
    try:
        run_id = await run_start.retry_given_up(
            state.database,
            state.registry,
            found.id,
            actor=visit.person.ref,
            clock=state.clock,
            write=ownership.writing(visit, found.id, audit.run_entry(found.id, None), SOURCE_RUN),
            tracer=state.tracer,
        )
    except ConflictError as error:
        return visit.redirect(f"{found.path}/runs", error.message)
    return visit.redirect(f"{found.path}/runs/{run_id}")


async def begin(visit: PageContext) -> Reply:
    """Start a run of a source, of every entity or of one, and redirect to its page.

    With `next`, a path of this service, it redirects there. If all entities are being collected
    already, it redirects to that run.
    """
    found, sent = await detail.subject(visit), visit.sent
    entity, back = sent.one("entity"), sent.one("next")
    try:
        run = await _begun(visit, found.id, entity)
    except (InputError, ConflictError, NotFoundError) as error:
        known = await runs.fetch_source_health(visit.state.database, found.id)
        under_way = known and known.running
        if under_way and not entity:
            notice = "A run was already in progress: this is it."
            return visit.redirect(f"{found.path}/runs/{under_way.id}", notice)
        return await detail.page(visit, found, error.status, entity=entity, problem=error.message)
    if back and safe_path(back) == back:
        return visit.redirect(back, f"{found.row.source.title} is being asked now.")
    return visit.redirect(f"{found.path}/runs/{run.id}")


async def show(visit: PageContext) -> Reply:
    """Page of a run: its progress, or its result."""
    found = await detail.subject(visit)
    text = visit.request.parameter("run")
    is_number = text.isascii() and text.isdigit() and len(text) < _DIGITS
    run = await runs.fetch_run(visit.state.database, int(text)) if is_number else None
    if run is None or run.source_id != found.id:
        raise NotFoundError(f"There is no such run of {found.id}; old ones are removed.")
    last = found.row.last
    has_failures = last is not None and last.id == run.id and run.failed > 0
    elapsed = (visit.now if run.finished_at is None else run.finished_at) - run.started_at
    return visit.page(
        "data-source-run.html",
        subject=found,
        run=run,
        elapsed=max(0, elapsed),
        # The entities are kept of the last run of everything.
        failures=f"{found.path}/failures" if has_failures and visit.may(CATALOG_READ) else "",
        is_stuck=_is_stuck(run, elapsed),
        parts_of=table_rows.parts_of(run),
        bar=table_rows.bar,
        figures=table_rows.figures,
        gaps=by_reason(await runs.list_gaps(visit.state.database, run.id)),
    )


async def _begun(visit: PageContext, source_id: str, entity: str) -> RunRecord:
    state = visit.state
    ref = str(refs.parse_ref(entity, kind="component")) if entity else None
    return await run_start.run_now(
        state.database,
        state.registry,
        source_id,
        ref,
        actor=visit.person.ref,
        clock=state.clock,
        write=ownership.writing(visit, source_id, audit.run_entry(source_id, ref), SOURCE_RUN),
        tracer=state.tracer,
    )


def _given_up(visit: PageContext, batch: GivenUpBatch) -> GivenUpRow:
    targets = batch_targets(batch.work)
    shown = list(targets)[:_MOST_PLACES] if visit.may(CATALOG_READ) else []
    return GivenUpRow(batch, sum(map(len, targets.values())), shown, len(targets) - len(shown))


def _is_stuck(run: RunRecord, elapsed: int) -> bool:
    is_waiting = run.finished_at is None and not (run.covered or run.failed)
    return is_waiting and elapsed >= _PATIENCE


def by_reason(gaps: Iterable[CountedGap]) -> list[ReasonOfGaps]:
    """Gaps by reason, each reason once: transient ones first, then the most common."""
    found: dict[tuple[str, str], list[CountedGap]] = {}
    for gap in gaps:
        found.setdefault((gap.kind, gap.reason), []).append(gap)
    order = list(KINDS)
    rows = [_row(kind, reason, same) for (kind, reason), same in found.items()]
    return sorted(rows, key=lambda row: (order.index(row.kind), -row.entities, row.places))


def _row(kind: str, reason: str, same: list[CountedGap]) -> ReasonOfGaps:
    places = [gap.place for gap in same if gap.place]
    most = max(gap.entities for gap in same)
    shown, rest = places[:_MOST_PLACES], places[_MOST_PLACES:]
    return ReasonOfGaps(kind, plain(reason), most, shown, len(rest))


SOURCE_RUNS: Sequence[PageRoute] = (
    PageRoute("GET", _PATH, listed, (SOURCE_READ,)),
    PageRoute("POST", _PATH, begin, (SOURCE_RUN,), owned=True),
    PageRoute("POST", "/data-sources/{id}/given-up", retry, (SOURCE_RUN,), owned=True),
    PageRoute("GET", f"{_PATH}/{{run}}", show, (SOURCE_READ,)),
)
