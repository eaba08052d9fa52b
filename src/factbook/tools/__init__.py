"""Registry of the tools, in listing order."""

from factbook.tools import all_entities_facts, changed_facts, entities, facts, sources
from factbook.tools.tool import Context, Tool

TOOLS: tuple[Tool, ...] = (
    sources.SOURCE_DISCOVERY_TOOL,
    facts.ENTITY_FACTS_TOOL,
    all_entities_facts.TOOL,
    *facts.METRIC_TOOLS,
    facts.FACT_HISTORY_TOOL,
    changed_facts.TOOL,
    entities.ENTITY_TOOL,
    entities.FIND_ENTITIES_TOOL,
)

__all__ = ["TOOLS", "Context", "Tool"]
