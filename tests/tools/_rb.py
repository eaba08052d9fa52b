"""x"""

from typing import Any
import pytest
from factbook.clock import DAY, HOUR, SECOND, iso
from tests.api.defining import define, item, push, pushed
from tests.service import NOON, Service, component
from tests.tools import past
from tests.tools.checks import refusal, structured
from tests.tools.sources import DRAFT, TREE, record
from tests.tools.past import PAYMENTS, ORDERS, HISTORY, CHANGES, changes, history, rows


@pytest.mark.spec("tool-error.says-what-to-do-next", "tool-error.unknown-data-source")
async def test_what_is_not_there_is_told_as_the_other_tools_tell_it(recording: Service) -> None:
    text = refusal(await recording.ask(TOOL, name="payments", dataSourceId="github"))
    assert text.startswith('There is no data source "github". There are: entity-metadata, ')
    text = refusal(await recording.ask(TOOL, name="payments", dataSourceId="tree", facts=["lines"]))
    assert text == (
        "The data source tree has no fact lines. "
        "Choose among: repo.files, repo.about, repo.owners, stars."
    )
    text = refusal(await recording.ask(TOOL, name="payments", facts=["lines", "wings", "fins"]))
    assert text.startswith("No data source has a fact fins, wings. Call get-data-source-discovery")
    text = refusal(await recording.ask(TOOL, name="paymnts"))
    assert f"Did you mean {PAYMENTS}?" in text


@pytest.mark.spec("tool-error.bad-argument")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"from": "yesterday"}, "from is not a time from 1970 on. Give a date or an ISO 8601"),
        ({"from": ""}, "from is not a time"),
        ({"to": "2026-02-30"}, "to is not a time"),
        ({"to": "1969-12-31"}, "to is not a time"),
        ({"from": "0001-01-01"}, "from is not a time"),
        ({"to": "10000-01-01"}, "to is not a time"),
        ({"to": "2026-11-21T25:00:00Z"}, "to is not a time"),
        ({"from": "7d"}, "from is not a time"),
        ({"from": "²026-11-01"}, "from is not a time"),
        ({"from": "2026-11-22", "to": "2026-11-21"}, "from is later than to"),
        ({"limit": 0}, "limit"),
        ({"limit": 201}, "`int` <= 200"),
        ({"facts": []}, "length >= 1"),
        ({"since": "7d"}, "since"),
        ({"cursor": ""}, "Leave cursor out to start anew"),
        ({"cursor": "payments"}, "Leave cursor out"),
        ({"cursor": "1/tree/1"}, "Leave cursor out"),
        ({"cursor": "-1/tree"}, "Leave cursor out"),
        ({"cursor": "1/"}, "Leave cursor out"),
        ({"cursor": f"{'9' * 17}/tree"}, "Leave cursor out"),
        ({"cursor": "1/a' OR 1=1"}, "Leave cursor out"),
    ],
    ids=str,
)
async def test_a_wrong_argument_is_refused(
    recording: Service, arguments: dict[str, Any], told: str
) -> None:
    assert told in refusal(await recording.ask(TOOL, name="payments", **arguments))
