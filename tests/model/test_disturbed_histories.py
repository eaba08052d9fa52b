"""Random histories in whose middle servers, locks, PostgreSQL and its primary go away."""

import asyncio
import logging
import os
import random
from collections.abc import Sequence
from pathlib import Path

import httpx2
import pytest

from tests.model.calls import UNKNOWN
from tests.model.checking import Event, unexplained
from tests.model.clients import ACTORS, enduring
from tests.model.counting import outcomes
from tests.model.histories import Client, histories
from tests.system.disturbances import BUSY, ON_REPLICA, Disturbance, Stage, database, dealt
from tests.system.forked import two_busy_servers
from tests.system.load import Follower, Load

pytestmark = [pytest.mark.system, pytest.mark.timeout(7200)]

log = logging.getLogger(__name__)

NUMBER = 500 if os.environ.get("FACTBOOK_SOAK") else 32
AT_ONCE = 4
# On replicas, by the count of a process, which begins anew whenever that is killed.
LEAST_READS = 32
# Each of the histories of a round has about twenty calls.
LATEST_CALL = 50


class Cue:
    """Says when a disturbance begins: with one of the next calls, whichever client makes it."""

    def __init__(self) -> None:
        self._left = 0
        self.given = asyncio.Event()

    def after(self, calls: int) -> None:
        """Begin to count the calls."""
        self._left = calls
        self.given.clear()

    def tick(self) -> None:
        """Count a call."""
        self._left -= 1
        if self._left <= 0:
            self.given.set()


@pytest.mark.spec("push.one-transaction", "faults.failover")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "replica"])
async def test_one_order_of_the_calls_explains_what_clients_saw_whatever_befell_the_service(
    kind: str, tmp_path: Path
) -> None:
    follower, load = Follower(), Load()
    more = (ON_REPLICA,) if kind == "replica" else ()
    with (
        database(kind, tmp_path) as (url, pair),
        # Of two servers with the same address, the replica is the one that is a standby.
        two_busy_servers(url, tmp_path, **BUSY, **replicas(url, kind)) as servers,
    ):
        chance = random.Random(1)
        stage = Stage.at(url, servers, chance, pair)
        tokens = [servers[0].token("--user", actor) for actor in ACTORS]
        load.begin(servers[0], tokens[0], [follower.step])
        cue, found = Cue(), dict[int, list[Event]]()
        async with enduring([one.url for one in servers], tokens, cue.tick) as clients:
            for first, disturbance in zip(
                range(0, NUMBER, AT_ONCE), dealt(chance, pair, *more), strict=False
            ):
                seeds = range(first, first + AT_ONCE)
                found |= await disturbed(seeds, clients, stage, disturbance, cue)
        await asyncio.to_thread(load.end)
        assert load.wrong == []
        with servers[0].client(tokens[0]) as http:
            check_feed(http, follower, found)
            if kind == "replica":
                assert reads_of_replicas(http) > LEAST_READS
        text = servers[0].log.read_text() + servers[1].log.read_text()
    assert [line for line in text.splitlines() if '.failed"' in line] == []
    assert not unexplained(found)
    unknown = [event for one in found.values() for event in one if event.answer == UNKNOWN]
    # Shown with --log-cli-level=INFO.
    log.info("%s unknown; %s", len(unknown), dict(sorted(outcomes(found.values()).items())))
    assert len(found) == NUMBER
    assert len(unknown) >= NUMBER // 100


def replicas(url: str, kind: str) -> dict[str, str]:
    """Settings of a service that reads from a replica, too, and waits long for it."""
    found = {"FACTBOOK_REPLICA_URL": url, "FACTBOOK_REPLICA_LAG": "0.5"}
    return found if kind == "replica" else {}


def reads_of_replicas(http: httpx2.Client) -> float:
    """The number of reads that replicas served, as a process counts them."""
    name = 'factbook_database_replica_reads_total{server="replica"} '
    [line] = [one for one in http.get("/metrics").text.splitlines() if one.startswith(name)]
    return float(line.removeprefix(name))


async def disturbed(
    seeds: Sequence[int],
    clients: Sequence[Client],
    stage: Stage,
    disturbance: Disturbance,
    cue: Cue,
) -> dict[int, list[Event]]:
    """Histories at once, in whose middle something happens."""
    log.info("%s: %s", seeds, disturbance.act.__name__)
    cue.after(stage.chance.randint(1, LATEST_CALL))

    async def happen() -> None:
        await cue.given.wait()
        await asyncio.to_thread(disturbance.act, stage)

    happening = asyncio.create_task(happen())
    found = await histories(seeds, clients, len(seeds))
    await happening
    return found


def check_feed(http: httpx2.Client, follower: Follower, found: dict[int, list[Event]]) -> None:
    """Every revision is told once and in order, and who read along was told nothing else."""
    whole = Follower()
    while whole.step(http):
        pass
    ids = [event["id"] for event in whole.told]
    assert len(set(ids)) == len(ids)
    assert [event["id"] for event in follower.told] == ids[: len(follower.told)]
    told: dict[str, list[int]] = {}
    for event in whole.told:
        if event["type"] == "set.replaced":
            told.setdefault(event["data"]["set"], []).append(event["data"]["revision"])
    stored = {
        event.call.set: event.answer.body[0]["revision"]
        for history in found.values()
        for event in history
        if event.call.verb == "revisions" and event.answer.status == 200
    }
    assert told == {name: list(range(1, last + 1)) for name, last in stored.items()}
