"""Collection on request: the facts of single entities, from every source."""

from collections.abc import Sequence
from functools import partial

from factbook.collection import run_plan
from factbook.datasources import catalog_samples
from factbook.facts import refresh_requests
from factbook.facts.datasource import DataSource
from factbook.integrations.integration import Integration
from factbook.storage import Database, Transaction

_AT_ONCE = 1_000


async def collect_requested(
    database: Database,
    sources: Sequence[DataSource],
    now: int,
    integrations: Sequence[Integration] = (),
) -> int:
    """Sample the catalog's facts of requested entities; returns the number of requests.

    For facts of integrations, runs are queued in the transaction that takes the requests.
    """
    done = 0
    work = partial(_take, sources=sources, integrations=integrations, now=now)
    while await refresh_requests.waiting(database):
        done += await database.write(work)
    return done


def _take(
    transaction: Transaction,
    *,
    sources: Sequence[DataSource],
    integrations: Sequence[Integration],
    now: int,
) -> int:
    ids = refresh_requests.take(transaction, _AT_ONCE)
    catalog_samples.sample_some(transaction, sources, ids, now)
    for integration in integrations:
        plan = run_plan.plan_some(transaction, integration, ids)
        if plan.entities or plan.missing:
            run_plan.enqueue(transaction, integration, plan, now)
    return len(ids)
