"""Tools about checks and scorecards, in the order in which they are listed."""

from factbook.tools.checks import (
    changed_results,
    check_preview,
    check_results,
    entity_results,
    exemption_request,
    scorecard_discovery,
    scorecard_rollup,
)
from factbook.tools.tool import Tool

READING: tuple[Tool, ...] = (
    scorecard_discovery.TOOL,
    entity_results.TOOL,
    check_results.TOOL,
    scorecard_rollup.TOOL,
    changed_results.TOOL,
    check_preview.TOOL,
)
WRITING: tuple[Tool, ...] = (exemption_request.TOOL,)
