"""Collection of facts: planned, begun and worked off in batches."""

from factbook.collection.collector import Collector, Further
from factbook.collection.run_now import collect_requested

__all__ = ["Collector", "Further", "collect_requested"]
