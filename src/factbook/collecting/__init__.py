"""Collecting facts: runs of the sources, and samples of what the catalog says of itself."""

from factbook.collecting.asking import collect_requested
from factbook.collecting.collector import Collector, Further
from factbook.collecting.connecting import Clients, Connect, Connections
from factbook.collecting.files import HostFiles
from factbook.collecting.memory import sweep as sweep_memories
from factbook.collecting.planning import Plan, enqueue, plan, plan_some
from factbook.collecting.registry import Known, Registry
from factbook.collecting.sampling import sample_catalog
from factbook.collecting.trying import Answered, Tried, tried

__all__ = [
    "Answered",
    "Clients",
    "Collector",
    "Connect",
    "Connections",
    "Further",
    "HostFiles",
    "Known",
    "Plan",
    "Registry",
    "Tried",
    "collect_requested",
    "enqueue",
    "plan",
    "plan_some",
    "sample_catalog",
    "sweep_memories",
    "tried",
]
