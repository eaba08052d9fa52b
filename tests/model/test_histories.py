"""Random histories of concurrent clients: one order of their calls explains every answer."""

import logging
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import StartService
from tests.model.checking import order, unexplained
from tests.model.clients import ACTORS, inside, outside
from tests.model.counting import outcomes
from tests.model.histories import histories
from tests.model.story import tell
from tests.processes import serving
from tests.soak import SOAK

SHORT = 60
# SQLite has one writer at a time, so fewer histories reach every outcome.
LONG = {"sqlite": 3_000 if SOAK else 150, "postgresql": 3_000 if SOAK else 500}

# What makes histories worth checking, and how many of ten thousand calls at least come to it.
INTERESTING = {
    "put 200": 800,
    "put 409 held by another": 80,
    "put 409 too many removals": 8,
    "put 412": 80,
    "post 200": 150,
    "post 409 held by another": 15,
    "post 412": 15,
    "delete 200": 40,
    "delete 412": 10,
    "remove 204": 60,
    "restore 200": 60,
    "restore 404": 40,
    "restore 409 held by another": 4,
    "restore 409 too many removals": 1,
    "restore 412": 30,
    "set 200": 500,
    "moved to another set": 150,
    "writes that overlap another": 600,
}


def dull(counted: Counter[str]) -> dict[str, int]:
    """What came too seldom.

    How calls overlap differs from run to run. So a run too short to expect five of an outcome says
    nothing about it; `make soak` is long enough for all.
    """
    expected = {
        outcome: least * counted["calls"] // 10_000 for outcome, least in INTERESTING.items()
    }
    return {
        outcome: counted[outcome]
        for outcome, least in expected.items()
        if least >= 5 and counted[outcome] < least
    }


@pytest.mark.slow
async def test_what_happens_call_by_call_is_explained_by_its_own_order(start: StartService) -> None:
    async with inside([await start(), await start()]) as clients:
        told = await tell(clients)
    assert [event.answer.status for event in told if event.answer.status != 200] == [
        412, 409, 204, 409, 404, 409
    ]  # fmt: skip
    assert order(told) == told


@pytest.mark.slow
@pytest.mark.spec("push.one-transaction", "guard.if-match")
async def test_one_order_of_the_calls_explains_what_clients_of_two_services_saw(
    start: StartService,
) -> None:
    async with inside([await start(), await start()]) as clients:
        found = await histories(range(SHORT), clients)
    assert len(found) == SHORT
    assert not unexplained(found)
    assert not dull(outcomes(found.values()))


@pytest.mark.system
@pytest.mark.timeout(3600)
@pytest.mark.spec("push.one-transaction", "guard.if-match")
async def test_one_order_of_the_calls_explains_what_clients_of_two_server_processes_saw(
    database_url: str, tmp_path: Path
) -> None:
    number = LONG[database_url.partition(":")[0]]
    with serving(database_url, tmp_path) as one, serving(database_url, tmp_path) as two:
        tokens = [one.token("--user", actor) for actor in ACTORS]
        async with outside([one.url, two.url], tokens) as clients:
            found = await histories(range(number), clients)
    assert len(found) == number
    assert not unexplained(found)
    counted = outcomes(found.values())
    # Shown with --log-cli-level=INFO.
    logging.getLogger(__name__).info("%s", dict(sorted(counted.items())))
    assert not dull(counted)
