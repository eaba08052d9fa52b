"""Collection by any number of workers on PostgreSQL, among which DBOS distributes lanes.

A lane is a place in the queue of a credential: as many batches of it are under way at a time, over
all workers, as there are places. A lane works on its batches one after another, in our order; to
DBOS it is one workflow. What has to be done stands in our rows alone, so that of a lane which is
lost nothing has to be recovered: it is deleted, and handed on anew.

Only processes that distribute import this module: DBOS takes a second and 40 MB.
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
# DBOS is asked for lanes at intervals, so that some are under way between two.
_LANE_SLOTS = 10
# How often workers ask DBOS for lanes.
_ASKED_SECONDS = 1.0
# How long lanes may take to end, and DBOS itself, which waits for the database without a limit.
_LANES_SECONDS = 2
_STOP_SECONDS = 3.0
_CONNECTIONS = 4
# What DBOS keeps of lanes that have ended.
_WORKFLOWS_KEPT = 10 * MINUTE
_PRUNED_AT_ONCE = 1_000


class LaneCollector(Collector):
    """One of the workers; the one that leads also begins runs and hands their lanes on."""

    # To hand a lane on takes about a second.
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
        """Begin due runs, and hand on their lanes."""
        await self._start()
        await super().tick()

    async def stand_by(self) -> None:
        """Serve the lanes that come while another worker leads."""
        await self._start()
        await self._look()
        await asyncio.sleep(POLL_SECONDS)

    async def work(self) -> None:
        """Hand on the lanes in which something waits, and take those of dead workers from them."""
        await self.take()
        await self._prune()
        await asyncio.sleep(POLL_SECONDS)

    async def take(self) -> int:
        """Hand on each lane in which something waits, and which no worker has; their number."""
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
        """Store finished work, leave the rest to others at once, and end DBOS."""
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
        """Start DBOS, whose tables are made by whoever is first."""
        engine = _build_engine(self._url)
        # Without a handler DBOS would add one that does not write as the others do.
        logging.getLogger("dbos").addHandler(logging.NullHandler())
        DBOS(config=_dbos_config(engine, self._holder))

        @DBOS.workflow(name="lane")
        async def lane(queue: str, places: int, place: int) -> None:
            await self._serve(Lane(queue, places, place))

        self._workflow = lane
        try:
            # On the event loop, so that lanes run on it, beside the pools that belong to it.
            DBOS.launch()
        except BaseException:
            # One that the database left halfway is started again from the beginning.
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
        # After a pause, as of a whole machine, others have taken over.
        return not (self._stopping or self._leadership.lapsed)

    async def _live(self) -> set[str]:
        """The lanes that wait or that a live worker has; those of dead ones are deleted."""
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
    """End DBOS and its connections, after the lanes that end in these seconds."""
    DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=seconds)
    engine.dispose()


def _renew_executor() -> None:
    """Replace the executor that DBOS has put into the loop, and shuts down."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


async def _run_within(seconds: float, work: Callable[[], None]) -> None:
    """Do this on a thread that is left behind if it takes longer, by the process's end, too."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            with suppress(RuntimeError):  # of a loop that did not wait so long
                loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=run, daemon=True).start()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ended.wait()


def _build_engine(url: str) -> Engine:
    """Connections like our own: the address may say what only libpq understands."""
    connect = partial(psycopg.connect, url, **make_connection_options(conninfo_to_dict(url)))
    address = "postgresql+psycopg://"
    return create_engine(
        address, creator=connect, pool_size=_CONNECTIONS, max_overflow=0, pool_pre_ping=True
    )


def _dbos_config(engine: Engine, holder: str) -> DBOSConfig:
    return {
        "name": "factbook",
        "system_database_url": "postgresql:///factbook",  # names the kind of the engine
        "system_database_engine": engine,
        # Workers of any release serve each other's lanes, which hold no code.
        "application_version": "1",
        "executor_id": holder,
        "log_level": "WARNING",
        "use_listen_notify": False,
        # Lanes are told nothing by DBOS, but its end waits for one such interval.
        "notification_listener_polling_interval_sec": 0.5,
    }
