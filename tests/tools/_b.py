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


@pytest.mark.spec("tools.history-and-changes.long-values")
async def test_long_values_are_cut_short_and_counted(recording: Service) -> None:
    files = [f"src/part-{number:04}/main.py" for number in range(5_000)]
    owners = {f"team-{number:03}": ["a", "b"] for number in range(200)}
    values = {
        "repo.files": files,
        "repo.about": "words " * 500,
        "repo.owners": owners,
        "stars": 12345678901234567890,
    }
    await record(recording, PAYMENTS, values, TREE)
    [found] = await rows(recording)
    assert found["cut"] == {"repo.files": 5_000, "repo.about": 3_000, "repo.owners": 200}
    facts = found["facts"]
    # Into 400 characters go 16 paths of 24 with quotes and comma, and 17 members of 23.
    assert facts["repo.files"] == files[:16]
    assert facts["repo.about"] == ("words " * 500)[:400]
    assert list(facts["repo.owners"].items()) == list(owners.items())[:17]
    assert facts["stars"] == 12345678901234567890
    # What is one short of it is whole.
    recording.time.advance(HOUR)
    whole = {"repo.about": "x" * 400, "repo.files": ["y" * 396], "repo.owners": {"a": "z" * 392}}
    await record(recording, PAYMENTS, whole, TREE)
    found = (await rows(recording))[0]
    assert "cut" not in found
    assert found["facts"] == whole


@pytest.mark.spec("tools.history-and-changes.long-values")
async def test_one_long_item_is_cut_to_nothing_and_still_counted(recording: Service) -> None:
    await record(recording, PAYMENTS, {"repo.files": ["x" * 1_000, "y"]}, TREE)
    [found] = await rows(recording)
    assert (found["facts"], found["cut"]) == ({"repo.files": []}, {"repo.files": 2})
