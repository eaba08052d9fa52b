"""Start of a run on request."""

from functools import partial

from factbook.collection import run_plan
from factbook.collection.run_plan import RunPlan
from factbook.integrations.integration import Integration
from factbook.scheduling.run_queue import Begun
from factbook.storage import Database, Transaction, Write


class NothingToCollectError(Exception):
    """Error for an entity that the source is not about."""


class UnderWayError(Exception):
    """Error while a run of all entities is in progress."""


async def begin(
    database: Database,
    integration: Integration,
    entity_id: int | None,
    now: int,
    write: Write | None = None,
) -> Begun:
    """Begin a run of all entities, or of one, in a transaction of `write`.

    Raises UnderWayError, NothingToCollectError.
    """
    write = write or database.write
    if entity_id is not None:
        return await write(
            partial(_begin_one, integration=integration, entity_id=entity_id, now=now)
        )
    plan = await run_plan.plan(database, integration)
    return await write(partial(_begin_whole, integration=integration, plan=plan, now=now))


def _begin_one(
    transaction: Transaction, *, integration: Integration, entity_id: int, now: int
) -> Begun:
    plan = run_plan.plan_some(transaction, integration, [entity_id])
    if not (plan.entities or plan.skipped or plan.failed):
        raise NothingToCollectError
    return _begun(run_plan.enqueue(transaction, integration, plan, now))


def _begin_whole(
    transaction: Transaction, *, integration: Integration, plan: RunPlan, now: int
) -> Begun:
    return _begun(run_plan.enqueue(transaction, integration, plan, now, whole=True))


def _begun(begun: Begun | None) -> Begun:
    if begun is None:
        raise UnderWayError
    return begun
