"""Collection of facts: planned, begun and worked off in batches."""

from factbook.collection.collector import Collector, Further
from factbook.collection.refresh_requests import collect_requested
from factbook.collection.run_plan import RunPlan, enqueue, plan, plan_some
from factbook.datasources.catalog_samples import sample_catalog
from factbook.datasources.clients import ClientFactory, Clients, Connect
from factbook.datasources.memory import sweep as sweep_memories
from factbook.datasources.registry import Known, Registry
from factbook.datasources.repository_files import HostFiles
from factbook.datasources.trial import TrialResponse, TrialResult, tried

__all__ = [
    "TrialResponse",
    "Clients",
    "Collector",
    "Connect",
    "ClientFactory",
    "Further",
    "HostFiles",
    "Known",
    "RunPlan",
    "Registry",
    "TrialResult",
    "collect_requested",
    "enqueue",
    "plan",
    "plan_some",
    "sample_catalog",
    "sweep_memories",
    "tried",
]
