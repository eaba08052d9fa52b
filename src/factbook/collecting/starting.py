"""Beginning a run because somebody asked for it."""

from functools import partial

from factbook.collecting import planning
from factbook.scheduling.engine import Begun
from factbook.sources.integration import Integration
from factbook.storage import Database, Transaction


class NothingToCollectError(Exception):
    """The source is not about the entity."""


async def begin(
    database: Database, integration: Integration, entity_id: int | None, now: int
) -> Begun | None:
    """Begin a run of everything, or of one entity.

    None when a run of everything is under way already; raises NothingToCollectError.
    """
    if entity_id is not None:
        work = partial(_begin_one, integration=integration, entity_id=entity_id, now=now)
        return await database.write(work)
    plan = await planning.plan(database, integration)
    return await database.write(lambda tx: planning.enqueue(tx, integration, plan, now, whole=True))


def _begin_one(
    transaction: Transaction, *, integration: Integration, entity_id: int, now: int
) -> Begun | None:
    plan = planning.plan_some(transaction, integration, [entity_id])
    if not (plan.entities or plan.skipped or plan.failed):
        raise NothingToCollectError
    return planning.enqueue(transaction, integration, plan, now)
