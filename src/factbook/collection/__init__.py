"""Collection of facts: planned, begun and worked off in batches."""

from factbook.collection.collector import Collector, Further
from factbook.collection.refresh_requests import collect_requested
from factbook.collection.run_plan import RunPlan, enqueue, plan, plan_some

__all__ = [
    "Collector",
    "Further",
    "RunPlan",
    "collect_requested",
    "enqueue",
    "plan",
    "plan_some",
]
