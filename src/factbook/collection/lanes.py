"""Collection by any number of workers on PostgreSQL; DBOS distributes lanes among them.

Each credential has a queue with a number of lanes, which limits its concurrent batches across all
workers. A lane works on its batches one after another, in our order; in DBOS, each lane is one
workflow. Pending work is stored only in our own rows. A lost lane needs no recovery: it is deleted
and distributed again.

Only processes that distribute lanes import this module: DBOS takes a second and 40 MB.
"""

import asyncio
import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import psycopg
import structlog
from dbos import DBOS, DBOSConfig, SetEnqueueOptions, SetWorkflowID
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Engine, create_engine

from factbook.clock import MINUTE, SECOND
from factbook.collection.collector import POLL_SECONDS, Collector
from factbook.integrations.integration import Integration
from factbook.scheduling import run_queue
from factbook.scheduling.lease import Leadership
from factbook.scheduling.run_queue import Lane
from factbook.storage import Database
from factbook.storage.postgresql_connections import make_connection_options

log = structlog.get_logger("factbook.collecting")

_DBOS_QUEUE = "factbook"
# Several, because workers poll DBOS for lanes only at intervals.
_LANE_SLOTS = 10
# Interval at which workers poll DBOS for lanes.
_ASKED_SECONDS = 1.0
# Time limits for lanes to end, and for DBOS, which would wait for the database indefinitely.
_LANES_SECONDS = 2
_STOP_SECONDS = 3.0
_CONNECTIONS = 4
# Retention of ended lanes in DBOS.
_WORKFLOWS_KEPT = 10 * MINUTE
_PRUNED_AT_ONCE = 1_000


class LaneCollector(Collector):
    """A worker; the leader also begins runs and distributes their lanes."""

    # Distributing a lane takes about a second.
    TURN = 10.0

    def __init__(
        self,
        database: Database,
        integrations: Sequence[Integration],
        *arguments: Any,
        leadership: Leadership,
        url: str,
        slots: int = _LANE_SLOTS,
        **named: Any,
    ) -> None:
        super().__init__(database, integrations, *arguments, slots=slots, **named)
        self._leadership = leadership
        self._url = url
        self._engine: Engine | None = None
        self._is_registered = self._stopping = False
        self._pruned_at = 0

    async def tick(self) -> None:
        """Begin due runs, and distribute their lanes."""
        await self._start()
        await super().tick()

    async def stand_by(self) -> None:
        """Serve distributed lanes while another worker leads."""
        await self._start()
        await self._look()
        await asyncio.sleep(POLL_SECONDS)

    async def work(self) -> None:
        """Distribute lanes with ready batches, and reclaim the lanes of dead workers."""
        await self.take()
        await self._prune()
        await asyncio.sleep(POLL_SECONDS)

    async def take(self) -> int:
        """Distribute each lane that has ready batches and no worker; returns their number."""
        ready = await run_queue.list_ready_lanes(self._database, self._integrations, self._clock())
        known = await self._live() if ready else ()
        new = [lane for lane in ready if _lane_name(lane) not in known]
        for lane in new:
            with (
                SetWorkflowID(f"{_lane_name(lane)} {secrets.token_hex(8)}"),
                SetEnqueueOptions(queue_partition_key=f"{lane.queue} {lane.place}"),
            ):
                await DBOS.enqueue_workflow_async(_DBOS_QUEUE, self._workflow, *lane)
        return len(new)

    async def stop(self) -> None:
        """Store finished work, release the rest to others at once, and end DBOS."""
        self._stopping = True
        ending = asyncio.create_task(self._end_dbos())
        try:
            await super().stop()
        finally:
            await ending

    async def _start(self) -> None:
        if self._engine is None:
            self._launch()
        if not self._is_registered:
            await DBOS.register_queue_async(
                _DBOS_QUEUE,
                partition_concurrency=1,
                worker_concurrency=self._slots,
                polling_interval_sec=_ASKED_SECONDS,
                on_conflict="always_update",
            )
            self._is_registered = True

    def _launch(self) -> None:
        """Start DBOS; the first process creates its tables."""
        engine = _build_engine(self._url)
        # Without a handler, DBOS would add one with a different format.
        logging.getLogger("dbos").addHandler(logging.NullHandler())
        DBOS(config=_dbos_config(engine, self._holder))

        @DBOS.workflow(name="lane")
        async def lane(queue: str, places: int, place: int) -> None:
            await self._serve(Lane(queue, places, place))

        self._workflow = lane
        try:
            # Launched on the event loop, to run lanes there with the loop's own pools.
            DBOS.launch()
        except BaseException:
            # A launch interrupted by the database is repeated from the start.
            _end_dbos(engine)
            _renew_executor()
            raise
        self._engine = engine

    async def _end_dbos(self) -> None:
        if self._engine is not None:
            _renew_executor()
            await _run_within(_STOP_SECONDS, partial(_end_dbos, self._engine, _LANES_SECONDS))
            _renew_executor()

    def _goes_on(self) -> bool:
        # After a long pause, such as a suspended machine, others have the lanes.
        return not (self._stopping or self._leadership.lapsed)

    async def _live(self) -> set[str]:
        """The lanes that wait or have a live worker; lanes of dead workers are deleted."""
        found = await DBOS.list_workflows_async(
            status=["ENQUEUED", "PENDING"],
            queue_name=_DBOS_QUEUE,
            load_input=False,
            load_output=False,
        )
        workers = await self._leadership.workers()
        lost = [
            one.workflow_id
            for one in found
            if one.status == "PENDING" and one.executor_id not in workers
        ]
        if lost:
            log.warning("lanes.lost", lanes=len(lost))
            await DBOS.delete_workflows_async(lost)
        return {one.workflow_id.rpartition(" ")[0] for one in found if one.workflow_id not in lost}

    async def _prune(self) -> None:
        now = self._clock()
        if 0 <= now - self._pruned_at < MINUTE:
            return
        self._pruned_at = now
        ended = await DBOS.list_workflows_async(
            status=["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"],
            queue_name=_DBOS_QUEUE,
            completed_before=datetime.fromtimestamp(
                (now - _WORKFLOWS_KEPT) / SECOND, UTC
            ).isoformat(),
            limit=_PRUNED_AT_ONCE,
            load_input=False,
            load_output=False,
        )
        if ended:
            await DBOS.delete_workflows_async([one.workflow_id for one in ended])


def _lane_name(lane: Lane) -> str:
    return f"{lane.queue} {lane.place}/{lane.places}"


def _end_dbos(engine: Engine, seconds: int = 0) -> None:
    """End DBOS and its connections, after waiting this many seconds for lanes."""
    DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=seconds)
    engine.dispose()


def _renew_executor() -> None:
    """Replace the loop's executor, which DBOS has set and shuts down."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


async def _run_within(seconds: float, work: Callable[[], None]) -> None:
    """Do the work on a thread that is abandoned after this time, also at process exit."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            with suppress(RuntimeError):  # the loop may be closed by then
                loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=run, daemon=True).start()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ended.wait()


def _build_engine(url: str) -> Engine:
    """Engine with connections like our own: only libpq understands all forms of the address."""
    connect = partial(psycopg.connect, url, **make_connection_options(conninfo_to_dict(url)))
    address = "postgresql+psycopg://"
    return create_engine(
        address, creator=connect, pool_size=_CONNECTIONS, max_overflow=0, pool_pre_ping=True
    )


def _dbos_config(engine: Engine, holder: str) -> DBOSConfig:
    return {
        "name": "factbook",
        "system_database_url": "postgresql:///factbook",  # only selects the engine type
        "system_database_engine": engine,
        # Workers of any release serve each other's lanes, which hold no code.
        "application_version": "1",
        "executor_id": holder,
        "log_level": "WARNING",
        "use_listen_notify": False,
        # Lanes get no notifications from DBOS, but its shutdown waits for one such interval.
        "notification_listener_polling_interval_sec": 0.5,
    }
