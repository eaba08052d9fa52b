"""Runs of a data source: starting, following and listing them."""

from collections.abc import Sequence
from typing import Final

from factbook.auth.permissions import SOURCE_READ, SOURCE_RUN
from factbook.catalog import ref as refs
from factbook.collection import run_log, run_now
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.scheduling import runs
from factbook.scheduling.runs import RunRecord
from factbook.web.data_sources import detail, table_rows
from factbook.web.sign_in.password_sign_in import safe_path
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

_PATH: Final = "/data-sources/{id}/runs"
_MOST: Final = 2 * runs.KEPT
_DIGITS: Final = 19  # more than those of any id
# A run of which so long nothing came is explained.
_PATIENCE: Final = 15_000


async def listed(visit: PageContext) -> Reply:
    """Page of the last runs of a source."""
    found = await detail.subject(visit)
    return visit.page(
        "data-source-runs.html",
        subject=found,
        runs=await runs.recent(visit.state.database, found.id, _MOST),
        bar=table_rows.bar,
        figures=table_rows.figures,
    )


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
        return await detail.page(visit, found, error.status, entity=entity, problem=error.message)
    if back and safe_path(back) == back:
        return visit.redirect(back, f"{found.row.source.title} is being asked now.")
    return visit.redirect(f"{found.path}/runs/{run.id}")


async def show(visit: PageContext) -> Reply:
    """Page of a run: its progress, or its result."""
    found = await detail.subject(visit)
    text = visit.request.parameter("run")
    is_number = text.isascii() and text.isdigit() and len(text) < _DIGITS
    run = await runs.run(visit.state.database, int(text)) if is_number else None
    if run is None or run.source_id != found.id:
        raise NotFoundError(f"There is no such run of {found.id}; old ones are forgotten.")
    elapsed = (visit.now if run.finished_at is None else run.finished_at) - run.started_at
    return visit.page(
        "data-source-run.html",
        subject=found,
        run=run,
        elapsed=max(0, elapsed),
        is_stuck=_is_stuck(run, elapsed),
        parts_of=table_rows.parts_of(run),
        bar=table_rows.bar,
        figures=table_rows.figures,
    )


async def _begun(visit: PageContext, source_id: str, entity: str) -> RunRecord:
    state = visit.state
    ref = str(refs.parse(entity, kind="component")) if entity else None
    run = await run_now.run(
        state.database,
        state.registry,
        source_id,
        ref,
        actor=visit.person.ref,
        now=visit.now,
        write=visit.writing(audit.of_run(source_id, ref)),
    )
    state.tracer.asked_for(run_log.work(source_id, run.id, run.deadline))
    return run


def _is_stuck(run: RunRecord, elapsed: int) -> bool:
    is_waiting = run.finished_at is None and not (run.covered or run.failed)
    return is_waiting and elapsed >= _PATIENCE


SOURCE_RUNS: Sequence[PageRoute] = (
    PageRoute("GET", _PATH, listed, (SOURCE_READ,)),
    PageRoute("POST", _PATH, begin, (SOURCE_RUN,)),
    PageRoute("GET", f"{_PATH}/{{run}}", show, (SOURCE_READ,)),
)
