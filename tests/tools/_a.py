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


@pytest.mark.spec("tools.history-and-changes.long-values")
async def test_of_long_lists_it_tells_what_came_and_what_went(recording: Service) -> None:
    files = [f"src/part-{number:04}.py" for number in range(1_000)]
    await record(recording, PAYMENTS, {"repo.files": files}, TREE)
    recording.time.advance(HOUR)
    now = [*files[1:500], *files[501:], "README.md"]
    await record(recording, PAYMENTS, {"repo.files": now}, TREE)
    [found] = await changes(recording)
    told = found["facts"]["repo.files"]
    # Into 400 characters go 21 paths of 19 with quotes and comma.
    assert told == {
        "from": files[:21],
        "to": now[:21],
        "added": ["README.md"],
        "removed": ["src/part-0000.py", "src/part-0500.py"],
        "cut": {"from": 1_000, "to": 999},
    }
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"repo.files": []}, TREE)
    [told] = [one["facts"]["repo.files"] for one in (await changes(recording))[1:]]
    assert told == {
        "from": now[:21],
        "to": [],
        "added": [],
        "removed": now[:21],
        "cut": {"from": 999, "removed": 999},
    }


@pytest.mark.spec("tools.history-and-changes.long-values")
async def test_other_long_values_are_cut_short_and_counted(recording: Service) -> None:
    owners = {f"team-{number:03}": number for number in range(100)}
    await record(recording, PAYMENTS, {"repo.about": "a" * 401, "repo.owners": owners}, TREE)
    recording.time.advance(HOUR)
    await record(recording, PAYMENTS, {"repo.about": "short", "repo.owners": {"team-000": 1}}, TREE)
    [found] = await changes(recording)
    assert found["facts"]["repo.about"] == {
        "from": "a" * 400,
        "to": "short",
        "cut": {"from": 401},
    }
    told = found["facts"]["repo.owners"]
    assert told.keys() == {"from", "to", "cut"}
    assert told["from"].items() <= owners.items()
    assert (told["to"], told["cut"]) == ({"team-000": 1}, {"from": 100})
    recording.time.advance(HOUR)
    # A list of short ones is told whole, without a word of what came and went.
    for files in (["a", "b"], ["b", "c"]):
        recording.time.advance(HOUR)
        await record(recording, ORDERS, {"repo.files": files}, TREE)
    assert (await changes(recording))[1]["facts"] == {
        "repo.files": {"from": ["a", "b"], "to": ["b", "c"]}
    }
