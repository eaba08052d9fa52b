"""Long values in get-fact-history and get-changed-facts: cut short, and how long they are."""

import pytest

from factbook.clock import HOUR
from tests.service import Service
from tests.tools.past import ORDERS, PAYMENTS, changes, rows
from tests.tools.sources import TREE, record

# Of history


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


# Of changes


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
