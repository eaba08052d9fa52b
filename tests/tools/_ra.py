"""x"""

from typing import Any
import pytest
from factbook.clock import DAY, HOUR, MINUTE, SECOND, iso
from factbook.facts.datasource import DataSource
from tests.api.defining import define, item, push, pushed
from tests.service import NOON, Service, component
from tests.tools import past
from tests.tools.checks import refusal, structured
from tests.tools.sources import COVERAGE, DRAFT, TREE, record
from tests.tools.past import PAYMENTS, ORDERS, HISTORY, CHANGES, changes, history, rows


@pytest.mark.spec("tool-error.bad-argument", "tool-error.says-what-to-do-next")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "missing required field `since`"),
        ({"since": None}, "since"),
        ({"since": 7}, "since"),
        ({"since": ""}, "since is not a time from 1970 on. Give a date or an ISO 8601"),
        ({"since": "7 days"}, "how long ago, such as 90m, 24h, 7d or 2w"),
        ({"since": "-7d"}, "since is not a time"),
        ({"since": "P7D"}, "since is not a time"),
        ({"since": "1234567d"}, "since is not a time"),
        ({"since": "\u0667d"}, "since is not a time"),
        ({"since": "2026-13-01"}, "since is not a time"),
        ({"since": "1969-12-31T23:59:59Z"}, "since is not a time"),
        (
            {"since": "2026-11-22"},
            "since is still to come: it is 2026-11-21T12:00:00.000+00:00 now.",
        ),
        ({"since": "9999-12-31T23:59:59-23:59"}, "since is still to come"),
        ({**ALL, "limit": 0}, "limit"),
        ({**ALL, "limit": 201}, "`int` <= 200"),
        ({**ALL, "kind": ""}, "kind"),
        ({**ALL, "name": "payments"}, "name"),
        ({**ALL, "dataSourceId": "github"}, 'There is no data source "github". There are: entity-'),
        ({**ALL, "cursor": ""}, "Leave cursor out to start anew"),
        ({**ALL, "cursor": "1/tree"}, "Leave cursor out"),
        ({**ALL, "cursor": "1/tree/x"}, "Leave cursor out"),
        ({**ALL, "cursor": f"1/tree/{'9' * 19}"}, "Leave cursor out"),
        ({**ALL, "cursor": "a" * 100_000}, "Leave cursor out"),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_a_wrong_argument_is_refused(
    recording: Service, arguments: dict[str, Any], told: str
) -> None:
    assert told in refusal(await recording.ask(TOOL, **arguments))
