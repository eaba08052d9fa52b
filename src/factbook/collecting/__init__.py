"""Collecting facts: runs of the sources, and samples of what the catalog says of itself."""

from factbook.collecting.asking import collect_requested
from factbook.collecting.collector import Collector, Connect
from factbook.collecting.connecting import Connections
from factbook.collecting.memory import sweep as sweep_memories
from factbook.collecting.planning import Plan, enqueue, plan, plan_some
from factbook.collecting.sampling import sample_catalog

__all__ = [
    "Collector",
    "Connect",
    "Connections",
    "Plan",
    "collect_requested",
    "enqueue",
    "plan",
    "plan_some",
    "sample_catalog",
    "sweep_memories",
]
