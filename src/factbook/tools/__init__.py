"""Registry of the tools, in the order in which they are listed."""

from factbook.tools import (
    all_entities_facts,
    changed_facts,
    discovery,
    entity,
    entity_facts,
    fact_history,
    find_entities,
    metrics,
)
from factbook.tools.tool import Context, Tool

TOOLS: tuple[Tool, ...] = (
    discovery.TOOL,
    entity_facts.TOOL,
    all_entities_facts.TOOL,
    *metrics.TOOLS,
    fact_history.TOOL,
    changed_facts.TOOL,
    entity.TOOL,
    find_entities.TOOL,
)

__all__ = ["TOOLS", "Context", "Tool"]
