"""The words of the pages of data sources."""

import pytest

from factbook.facts import schema
from factbook.tools import TOOLS
from factbook.web import data_sources


def test_every_shape_has_a_tool_that_there_is() -> None:
    named = {*data_sources.METRIC_TOOLS.values(), data_sources.COMPLIANCE_TOOL}
    assert named <= {tool.name for tool in TOOLS}
    assert {*data_sources.METRIC_TOOLS, "compliance"} == {shape.name for shape in schema.SHAPES}


def test_a_cadence_is_told_in_words(subtests: pytest.Subtests) -> None:
    for line, message in [
        ("*/10 * * * *", "every 10 minutes"),
        ("* * * * *", "every minute"),
        ("7 * * * *", "every hour"),
        ("0 */6 * * *", "every 6 hours"),
        ("30 4 * * *", "every day at 04:30 UTC"),
        ("30 4 * * 1-5", "on weekdays at 04:30 UTC"),
        ("0 6 * * 7", "every Sunday at 06:00 UTC"),
        ("0 6 * * 1", "every Monday at 06:00 UTC"),
        ("0 6 1 * *", "cron 0 6 1 * *"),
        ("0,30 6-9 * * mon", "cron 0,30 6-9 * * mon"),
        ("*/5 6 * * *", "cron */5 6 * * *"),
        ("* 6 * * *", "cron * 6 * * *"),
    ]:
        with subtests.test(line=line):
            assert data_sources.describe_cadence(line) == message
