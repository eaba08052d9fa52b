"""What get-fact-history and get-changed-facts refuse, and what they say to do instead."""

from typing import Any

import pytest

from tests.service import Service
from tests.tools.checks import refusal
from tests.tools.past import ALL, CHANGES, HISTORY, PAYMENTS

# Of history


@pytest.mark.spec("tool-error.says-what-to-do-next", "tool-error.unknown-data-source")
async def test_what_is_not_there_is_told_as_the_other_tools_tell_it(recording: Service) -> None:
    text = refusal(await recording.ask(HISTORY, name="payments", dataSourceId="github"))
    assert text.startswith('There is no data source "github". There are: entity-metadata, ')
    text = refusal(
        await recording.ask(HISTORY, name="payments", dataSourceId="tree", facts=["lines"])
    )
    assert text == (
        "The data source tree has no fact lines. "
        "There are: repo.files, repo.about, repo.owners, stars."
    )
    text = refusal(await recording.ask(HISTORY, name="payments", facts=["lines", "wings", "fins"]))
    assert text.startswith("No data source has a fact fins, wings. Did you mean lines? There are: ")
    text = refusal(await recording.ask(HISTORY, name="paymnts"))
    assert f"Did you mean {PAYMENTS}?" in text


@pytest.mark.spec("tool-error.bad-argument")
async def test_a_wrong_argument_of_get_fact_history_is_refused(
    recording: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"from": "yesterday"}, "from is not a time from 1970 on. Give a date or an ISO 8601"),
        ({"to": "2026-02-30"}, "to is not a time"),
        ({"to": "1969-12-31"}, "to is not a time"),
        ({"from": "0001-01-01"}, "from is not a time"),
        ({"to": "10000-01-01"}, "to is not a time"),
        ({"to": "2026-11-21T25:00:00Z"}, "to is not a time"),
        ({"from": "7d"}, "from is not a time"),
        ({"from": "²026-11-01"}, "from is not a time"),
        ({"from": "2026-11-22", "to": "2026-11-21"}, "from is later than to"),
        ({"limit": 0}, "limit"),
        ({"limit": 201}, "a whole number <= 200"),
        ({"facts": []}, "length >= 1"),
        ({"since": "7d"}, "since"),
        ({"cursor": "payments"}, "Leave it out"),
        ({"cursor": "1/tree/1"}, "Leave it out"),
        ({"cursor": "-1/tree"}, "Leave it out"),
        ({"cursor": "1/"}, "Leave it out"),
        ({"cursor": f"{'9' * 17}/tree"}, "Leave it out"),
        ({"cursor": "1/a' OR 1=1"}, "Leave it out"),
    ]
    for arguments, message in cases:
        with subtests.test(arguments=arguments):
            assert message in refusal(await recording.ask(HISTORY, name="payments", **arguments))


# Of changes


@pytest.mark.spec("tool-error.bad-argument", "tool-error.says-what-to-do-next")
async def test_a_wrong_argument_of_get_changed_facts_is_refused(
    recording: Service, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
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
            "since is in the future: it is 2026-11-21T12:00:00.000+00:00 now.",
        ),
        ({"since": "9999-12-31T23:59:59-23:59"}, "since is in the future"),
        ({**ALL, "limit": 0}, "limit"),
        ({**ALL, "limit": 201}, "a whole number <= 200"),
        ({**ALL, "name": "payments"}, "name"),
        ({**ALL, "dataSourceId": "github"}, 'There is no data source "github". There are: entity-'),
        ({**ALL, "cursor": "1/tree"}, "Leave it out"),
        ({**ALL, "cursor": "1/tree/x"}, "Leave it out"),
        ({**ALL, "cursor": f"1/tree/{'9' * 19}"}, "Leave it out"),
        ({**ALL, "cursor": "a" * 100_000}, "Leave it out"),
    ]
    for arguments, message in cases:
        with subtests.test(arguments=arguments):
            assert message in refusal(await recording.ask(CHANGES, **arguments))
