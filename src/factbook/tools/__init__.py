"""What can be asked: the table of the nine tools."""

from factbook.tools import compliance, discovery, entity_facts, metrics
from factbook.tools.tool import Context, Tool

TOOLS: tuple[Tool, ...] = (
    discovery.TOOL,
    entity_facts.ONE,
    entity_facts.ALL,
    *metrics.TOOLS[:4],
    compliance.TOOL,
    *metrics.TOOLS[4:],
)

__all__ = ["TOOLS", "Context", "Tool"]
