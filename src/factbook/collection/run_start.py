"""Start of runs: plans, runs on request and for new entities, and samples of the catalog."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
import structlog

from factbook.catalog import filters
from factbook.catalog import ref as refs
from factbook.catalog.store import stored_entities
from factbook.catalog.store.conditions import SQL
from factbook.clock import MINUTE, SECOND, Clock
from factbook.datasources.registry import Registry, SourceSnapshot
from factbook.errors import ConflictError, GoneError, UnavailableError, no_such
from factbook.events.store import EventFilter, FeedPosition, find_feed_end, page_events
from factbook.facts import refresh_requests, retention, store
from factbook.facts.datasource import DataSource, duration_milliseconds
from factbook.facts.freshness import Observation
from factbook.facts.store import Last
from factbook.integrations import catalog
from factbook.integrations.integration import CollectionSubject, Integration
from factbook.outbound.outcomes import Missing, Outcome
from factbook.scheduling import housekeeping, lease, run_queue, runs, schedule
from factbook.scheduling.run_queue import Begun, Queue, RunOrder
from factbook.scheduling.runs import RunGap, RunRecord
from factbook.storage import Database, Transaction, Write
from factbook.storage.database import fetch_counter, put_counter, select_counter
from factbook.telemetry.spans import NO_TRACER, Tracer, Work

log = structlog.get_logger("factbook.collecting")
_ENTITIES_IN_PORTION = 500
_DEFAULT_TIMEOUT = 20 * MINUTE
_NOT_PLANNED = "upstream-error: the run could not be planned; the log has more"
# Entity ids by target: entities with the same target share one answer.
Targets = dict[str, list[int]]
_SAMPLE_LEASE = "catalog-sample"
_SAMPLED_AT_ONCE = 1_000
_request_log = structlog.get_logger("factbook.data_sources")
# Refresh requests per transaction.
_REQUESTS_AT_ONCE = 1_000
# Counter of the first unread feed position.
_PLACE_COUNTER: Final = "collected_event"
_ARRIVALS_LEASE: Final = "arrivals"
_ADDED_EVENTS: Final = EventFilter(types=("entity.added",))
# Entities per page: more than one feed row has.
_EVENTS_AT_ONCE: Final = 2_000
# Pause after a page that began runs: entities added one by one share the next runs.
ARRIVALS_PAUSE: Final = 10 * SECOND


class RunPlan(NamedTuple):
    """The batches of a run, and new reasons for entities that are in no batch.

    With an `error` the run fails at once.
    """

    works: list[str]
    entities: int
    missing: list[Observation]
    skipped: int = 0
    failed: int = 0
    gaps: Mapping[RunGap, int] = MappingProxyType({})
    error: str | None = None


class NothingToCollectError(Exception):
    """Error for an entity outside the source's filter."""


class UnderWayError(Exception):
    """Error while a run of every entity is in progress."""


async def begin_run(
    database: Database,
    integration: Integration,
    now: int,
    *,
    entity_id: int | None = None,
    since: int | None = None,
    write: Write | None = None,
    tracer: Tracer = NO_TRACER,
) -> Begun:
    """Begin a run of all the source's entities, or of a single entity, in a transaction of `write`.

    With `since` the run is scheduled: a run that started at or after that time precludes it, and a
    failure to plan is recorded as a failed run. Raises UnderWayError if a full run precludes it,
    and NothingToCollectError if the entity is outside the source's filter.
    """
    if entity_id is None:
        make = await _planned_run(database, integration, now, since)
    else:
        make = partial(_run_of_entity, integration=integration, entity_id=entity_id, now=now)

    def work(transaction: Transaction) -> Begun:
        begun = make(transaction)
        transaction.evaluate_checks()
        return begun

    begun = await (write or database.write)(work)
    tracer.asked_for(run_trace(integration.source.id, begun.run_id, begun.deadline))
    return begun


async def begin_or_join_run(
    database: Database, integration: Integration, now: int, entity_id: int | None, write: Write
) -> int:
    """The id of the run that `begin` begins, or of the full run that precludes it."""
    while True:
        try:
            begun = await begin_run(database, integration, now, entity_id=entity_id, write=write)
            return begun.run_id
        except UnderWayError:
            under_way = partial(runs.find_current_run, source_id=integration.source.id)
            run_id = await database.write(under_way)
            if run_id is not None:  # else that run has ended meanwhile
                return run_id


def begin_run_of_some(
    transaction: Transaction,
    integration: Integration,
    ids: list[int],
    now: int,
    *,
    is_asked_for: bool = True,
) -> Begun | None:
    """Begin a run of these entities, as far as the source's filter matches; None if none match.

    Unless `is_asked_for`, a run that cannot be planned is recorded as failed.
    """
    rows = transaction.all(
        *stored_entities.entities_among_sql(_tracked_condition(integration.source), ids)
    )
    if not rows:
        return None
    try:
        targets, missing = Targets(), list[Observation]()
        subjects = [CollectionSubject(*row) for row in stored_entities.decode_collectable(rows)]
        _sort_portion(integration, subjects, targets, missing)
        plan = _build_plan(integration, targets, missing, {})
    except Exception as error:
        if is_asked_for:
            raise
        plan = _failed_plan(integration, error)
    return _enqueue_plan(transaction, integration, plan, now, whole=False)


async def _planned_run(
    database: Database, integration: Integration, now: int, since: int | None
) -> Callable[[Transaction], Begun]:
    """A function that creates the full run; raises UnderWayError."""
    try:
        planned = await _plan_run(database, integration)
    except UnavailableError:
        raise
    except Exception as error:
        if since is None:
            raise
        planned = _failed_plan(integration, error)
    return partial(_enqueue_plan, integration=integration, plan=planned, now=now, since=since)


def _run_of_entity(
    transaction: Transaction, *, integration: Integration, entity_id: int, now: int
) -> Begun:
    begun = begin_run_of_some(transaction, integration, [entity_id], now)
    if begun is None:
        raise NothingToCollectError
    return begun


def _enqueue_plan(
    transaction: Transaction,
    integration: Integration,
    plan: RunPlan,
    now: int,
    *,
    whole: bool = True,
    since: int | None = None,
) -> Begun:
    """Create a run of the plan; raises UnderWayError if a full run precludes it."""
    source = integration.source
    order = RunOrder(
        source.id,
        Queue(integration.credential, integration.at_once),
        plan.works,
        "asked" if since is None else "cadence",
        whole,
        now + (duration_milliseconds(source.timeout) if source.timeout else _DEFAULT_TIMEOUT),
        plan.entities,
        skipped=plan.skipped,
        failed=plan.failed,
        error=plan.error,
        gaps=plan.gaps,
    )
    latest = run_queue.NEVER if since is None else since
    begun = run_queue.enqueue_run(transaction, order, now, since=latest)
    if begun is None:
        raise UnderWayError
    store.record_facts(transaction, source, plan.missing, now)
    if whole and plan.error is None:
        retention.drop_untracked(transaction, source)
    return begun


async def _plan_run(database: Database, integration: Integration) -> RunPlan:
    """The plan for all the source's entities; those never collected come first."""
    last = await store.find_last_collections(database, integration.source.id)
    targets, missing = Targets(), list[Observation]()
    async for portion in _every_entity(database, integration.source):
        # User-defined sources may take long to compute targets.
        await asyncio.to_thread(_sort_portion, integration, portion, targets, missing)
    return _build_plan(integration, targets, missing, last)


def _failed_plan(integration: Integration, error: Exception) -> RunPlan:
    log.error("plan.failed", source=integration.source.id, exc_info=error)
    return RunPlan([], 0, [], error=_NOT_PLANNED)


def run_trace(source_id: str, run_id: int, deadline: int) -> Work:
    """A run in traces; run ids repeat between databases, but their deadlines do not."""
    return Work("run", f"{source_id} {run_id} {deadline}")


def batch_targets(work: str) -> Targets:
    """The targets of a batch, with the entity ids of each."""
    return dict(msgspec.json.decode(work, type=list[tuple[str, list[int]]]))


def batch_work(targets: Iterable[str], entities: Mapping[str, list[int]]) -> str:
    """The stored form of a batch."""
    return msgspec.json.encode([(target, entities[target]) for target in targets]).decode()


async def _every_entity(
    database: Database, source: DataSource
) -> AsyncIterator[list[CollectionSubject]]:
    after = 0
    while rows := await database.all(
        *stored_entities.entity_page_sql(_tracked_condition(source), after, _ENTITIES_IN_PORTION)
    ):
        yield [CollectionSubject(*row) for row in stored_entities.decode_collectable(rows)]
        after = rows[-1][0]


def _tracked_condition(source: DataSource) -> SQL:
    if source.selection is None:
        return stored_entities.EVERY_ENTITY
    return filters.make_filter_condition(source.selection)


def _sort_portion(
    integration: Integration,
    portion: Iterable[CollectionSubject],
    targets: Targets,
    missing: list[Observation],
) -> None:
    for subject in portion:
        try:
            target = integration.target(subject.entity)
        except Exception as error:
            log.error("target.failed", source=integration.source.id, exc_info=error)
            target = Missing(Outcome.TRANSIENT, "the entity's annotations could not be read")
        if isinstance(target, str):
            targets.setdefault(target, []).append(subject.entity_id)
        else:
            passing = frozenset({""}) if target.passing else frozenset[str]()
            missing.append(Observation(subject.entity_id, {}, {"": target.reason}, passing))


def _build_plan(
    integration: Integration,
    targets: Targets,
    missing: list[Observation],
    last: Mapping[int, Last],
) -> RunPlan:
    def oldest(target: str) -> int:
        return min(last[id_].written_at if id_ in last else 0 for id_ in targets[target])

    batches = integration.batches(sorted(targets, key=oldest)) if targets else []
    works = [batch_work(batch, targets) for batch in batches]
    # The same reason as in the last run is not stored again.
    new = [
        one
        for one in missing
        if one.passing or one.entity_id not in last or last[one.entity_id].reasons != one.reasons
    ]
    failed = sum(bool(one.passing) for one in missing)
    count = sum(map(len, targets.values()))
    gaps = Counter(
        RunGap("", one.reasons[""], "passing" if one.passing else "skipped") for one in missing
    )
    return RunPlan(works, count, new, len(missing) - failed, failed, gaps)


def sample_some(
    transaction: Transaction, sources: Sequence[DataSource], ids: list[int], now: int
) -> None:
    """Append the facts of the catalog's own sources about these entities to history."""
    rows = stored_entities.read_compliance_within(transaction, ids)
    for source in sources:
        if catalog.is_catalog_source(source.id):
            _append_samples(transaction, source=source, rows=rows, now=now)


async def sample_catalog(database: Database, sources: Sequence[DataSource], now: int) -> int:
    """Append the facts of the catalog's own sources to history where they have changed.

    Returns the number of entities examined; 0 if none is due by the sources' cadence.
    """
    own = [source for source in sources if catalog.is_catalog_source(source.id) and source.cadence]
    nexts = [
        schedule.find_next_time(schedule.parse_cadence(source.cadence or ""), now) for source in own
    ]
    holder = f"sample-{now}"
    if not own or not await lease.claim_lease(
        database, _SAMPLE_LEASE, holder, now, min(nexts) - now
    ):
        return 0
    try:
        return await _sample_sources(database, own, now)
    except BaseException:
        # Missing samples are taken in the next round, not when samples are due again.
        await lease.release_lease(database, _SAMPLE_LEASE, holder)
        raise


async def _sample_sources(database: Database, own: list[DataSource], now: int) -> int:
    seen, last = 0, 0
    while rows := await stored_entities.page_compliance(database, last, _SAMPLED_AT_ONCE):
        for source in own:
            await database.write(partial(_append_samples, source=source, rows=rows, now=now))
        seen, last = seen + len(rows), rows[-1][0]
    return seen


def _append_samples(
    transaction: Transaction, *, source: DataSource, rows: list[tuple[int, int]], now: int
) -> None:
    facts = [
        (id_, msgspec.json.decode(catalog.encode_catalog_facts(source.id, bits)))
        for id_, bits in rows
    ]
    store.append_samples(transaction, source.id, facts, now, source.version)


async def run_now(
    database: Database,
    registry: Registry,
    source_id: str,
    entity: str | None,
    *,
    actor: str,
    clock: Clock,
    write: Write,
    tracer: Tracer = NO_TRACER,
) -> RunRecord:
    """Begin to collect a source now, for every entity or for the one with this reference.

    `write` is as in `define`. Raises InputError, NotFoundError, and ConflictError if the source
    is not collected, does not match the entity, or already has a full run in progress.
    """
    known = await registry.latest()
    if source_id not in known.sources:
        raise no_such("data source", source_id, known.sources)
    ref = None if entity is None else str(refs.parse_ref(entity))
    id_ = None if ref is None else await find_entity_id(database, ref)
    now = await lease.fetch_shared_time(database, clock)
    integration = known.integrations.get(source_id)
    if integration is None:
        raise _not_collected_error(source_id, known)
    try:
        begun = await begin_run(
            database, integration, now, entity_id=id_, write=write, tracer=tracer
        )
    except NothingToCollectError:
        left_out = integration.source.left_out(ref or "")
        raise ConflictError(f"{left_out[:1].upper()}{left_out[1:]}.") from None
    except UnderWayError:
        raise _under_way_error(source_id) from None
    found = await runs.fetch_run(database, begun.run_id)
    if found is None:
        raise _under_way_error(source_id)
    _request_log.info("data_source.run", source=source_id, run=found.id, actor=actor)
    return found


async def retry_given_up(
    database: Database,
    registry: Registry,
    source_id: str,
    *,
    actor: str,
    clock: Clock,
    write: Write,
    tracer: Tracer = NO_TRACER,
) -> int:
    """Begin a run of the entities in a source's abandoned batches; returns its id.

    `write` is as in `define`. Raises ConflictError if no batch was abandoned, or the source is no
    longer collected.
    """
    integration = (await registry.latest()).integrations.get(source_id)
    now = await lease.fetch_shared_time(database, clock)

    def begin(transaction: Transaction) -> Begun:
        works = map(batch_targets, runs.take_given_up_work(transaction, source_id))
        ids = {id_ for targets in works for found in targets.values() for id_ in found}
        begun = None
        if integration is not None:
            begun = begin_run_of_some(transaction, integration, sorted(ids), now)
        if begun is None:
            raise ConflictError(f"Nothing of {source_id} that was given up can be collected.")
        transaction.evaluate_checks()
        return begun

    begun = await write(begin)
    tracer.asked_for(run_trace(source_id, begun.run_id, begun.deadline))
    _request_log.info("data_source.run", source=source_id, run=begun.run_id, actor=actor)
    return begun.run_id


async def collect_requested(
    database: Database,
    sources: Sequence[DataSource],
    clock: Clock,
    integrations: Sequence[Integration] = (),
) -> int:
    """Sample the catalog's facts of requested entities; returns the number of requests.

    For facts of integrations, runs are queued in the transaction that takes the requests.
    """
    done = 0
    while await refresh_requests.has_refresh_requests(database):
        now = await lease.fetch_shared_time(database, clock)
        work = partial(_take_requests, sources=sources, integrations=integrations, now=now)
        done += await database.write(work)
    return done


async def find_entity_id(database: Database, ref: str) -> int:
    """The id of the entity with this reference; raises NotFoundError."""
    found = await stored_entities.read_entity_id(database, ref)
    if found is None:
        raise await stored_entities.make_unknown_error(database, ref)
    return found


def _take_requests(
    transaction: Transaction,
    *,
    sources: Sequence[DataSource],
    integrations: Sequence[Integration],
    now: int,
) -> int:
    ids = refresh_requests.take_refresh_requests(transaction, _REQUESTS_AT_ONCE)
    sample_some(transaction, sources, ids, now)
    for integration in integrations:
        begin_run_of_some(transaction, integration, ids, now)
    transaction.evaluate_checks()
    return len(ids)


def _under_way_error(source_id: str) -> ConflictError:
    return ConflictError(f"A full run of {source_id} is already in progress.")


def _not_collected_error(source_id: str, known: SourceSnapshot) -> ConflictError:
    if source_id in known.problems:
        unread = ConflictError(f"{source_id} cannot be collected on this server.")
        text = f"{source_id} cannot be collected: {known.problems[source_id]}"
        return ConflictError(text).unless_read(unread)
    if source_id in known.definitions:
        return ConflictError(f"{source_id} is not collected: its facts are pushed.")
    return ConflictError(f"{source_id} is read from the catalog on request.")


class Arrivals:
    """Follower of the feed for new entities, run by one process at a time."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._place = 0
        self._begun_at: int | None = None

    async def collect(self, integrations: Sequence[Integration]) -> int:
        """Begin runs of new entities; returns the number of entities examined.

        Sources without a cadence are only collected on request.
        """
        if self._begun_at is not None and 0 <= self._clock() - self._begun_at < ARRIVALS_PAUSE:
            return 0
        wanted = [one for one in integrations if one.source.cadence]
        stored = await fetch_counter(self._database, _PLACE_COUNTER)
        place = max(stored, self._place)
        end = await find_feed_end(self._database)
        while place < end.position:
            refs, place = await self._page(place, end)
            if refs:
                return await self._begin(wanted, refs, stored, place)
            # Kept in memory only: most events are about facts, and each would cause a write.
            self._place = place
        return 0

    async def _page(self, place: int, end: FeedPosition) -> tuple[list[str], int]:
        """The references of new entities in the next rows, and the place after these."""
        try:
            page = await page_events(
                self._database, FeedPosition(place, 0), _ADDED_EVENTS, _EVENTS_AT_ONCE
            )
        except GoneError:
            # Expired, or from a backup: the sources' next runs find new entities.
            return [], end.position
        # Without those of a row that continues on the next page.
        cut = page.next.position if page.next.item else None
        refs = [event.subject for event in page.events if event.place.position != cut]
        return refs, page.next.position

    async def _begin(
        self, integrations: Sequence[Integration], refs: list[str], stored: int, place: int
    ) -> int:
        now = await lease.fetch_shared_time(self._database, self._clock)
        begun = (await runs.fetch_starts(self._database, now + housekeeping.LARGEST_LEAD)).last
        if any(one.source.id not in begun for one in integrations):
            # A new source's first run begins at once and covers existing entities.
            return 0

        by_ref = await self._database.write(partial(stored_entities.read_ids_of_refs, refs=refs))
        ids = set(by_ref.values())
        # A separate write per source lets others write in between.
        for one in integrations:
            begin = partial(_begin_arrivals, integration=one, ids=ids, stored=stored, now=now)
            if not await self._database.write(begin):
                return 0

        def store_place(transaction: Transaction) -> bool:
            if not _lock_place(transaction, stored):
                return False
            put_counter(transaction, _PLACE_COUNTER, place)
            return True

        if not await self._database.write(store_place):
            return 0
        self._place, self._begun_at = place, self._clock()
        return len(ids)


def _begin_arrivals(
    transaction: Transaction, *, integration: Integration, ids: set[int], stored: int, now: int
) -> bool:
    """Begin a run of entities new to the source; false if another process has.

    A source that fails to plan does not stop the others: its next run finds the entities.
    """
    if not _lock_place(transaction, stored):
        return False
    new = sorted(ids - _known_entities(transaction, integration.source.id, ids))
    begin_run_of_some(transaction, integration, new, now, is_asked_for=False)
    transaction.evaluate_checks()
    return True


def _lock_place(transaction: Transaction, stored: int) -> bool:
    """Lock the place; false if another process has moved it."""
    transaction.lock(_ARRIVALS_LEASE)
    return select_counter(transaction, _PLACE_COUNTER) == stored


def _known_entities(transaction: Transaction, source_id: str, ids: set[int]) -> set[int]:
    """The entities that a source has facts about, or has queued."""
    works = run_queue.list_unfinished_work(transaction, source_id)
    targets = (found for work in works for found in batch_targets(work).values())
    # Read last: facts stored meanwhile were in a batch read above.
    return set(chain.from_iterable(targets)) | store.select_collected(
        transaction, source_id, sorted(ids)
    )
