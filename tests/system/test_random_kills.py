"""Servers that are killed at random moments lose nothing, whatever else befalls them and theirs.

In the middle of the load before each kill something else happens (disturbances.py): a restart of a
process or of PostgreSQL, locks and leases that are taken away, a failover to a replica.
FACTBOOK_SEED repeats the moments of an earlier run, which prints its seed.
"""

import asyncio
import logging
import os
import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from factbook.storage.database_url import open_database
from tests.collection.madeup import repository
from tests.service import PUSH
from tests.system.disturbances import BUSY, Disturbance, Stage, database, dealt
from tests.system.forked import two_busy_servers
from tests.system.load import ENTITIES, SETS, Follower, Load, Pusher, ask
from tests.waiting import TAKEN_OVER, until

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.system, pytest.mark.timeout(3600)]

KILLS = 100 if os.environ.get("FACTBOOK_SOAK") else 10
TARGETS = 60
# Search rows without an entity, and entities that are not found exactly once by their name.
INDEXES_AGREE = """
SELECT (SELECT COUNT(*) FROM search s WHERE NOT EXISTS (
    SELECT 1 FROM entities e WHERE e.id = s.entity_id
)), (SELECT COUNT(*) FROM entities e WHERE (
    SELECT COUNT(*) FROM search s JOIN search_keys k ON k.id = s.key_id
    WHERE s.entity_id = e.id AND k.key = 'metadata.name' AND s.value = lower(e.name)
) <> 1)
"""


def seed() -> int:
    given = os.environ.get("FACTBOOK_SEED")
    chosen = int(given) if given else random.randrange(1_000_000)
    print(f"FACTBOOK_SEED={chosen}")  # noqa: T201 - pytest shows it with a failure
    return chosen


@pytest.mark.spec("faults.kills", "faults.failover")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_nothing_is_lost_by_kills_and_what_else_happens_at_random_moments(
    kind: str, tmp_path: Path
) -> None:
    chance = random.Random(seed())
    pushers, follower = [Pusher(set_id) for set_id in SETS], Follower()
    ids: dict[str, str] = {}
    with (
        database(kind, tmp_path) as (url, pair),
        two_busy_servers(url, tmp_path, **BUSY) as servers,
    ):
        token = servers[0].token()
        with servers[0].client(token) as http:
            parts = [repository(f"part-{number}") for number in range(TARGETS)]
            assert http.put(f"{PUSH}/sets/parts", json={"items": parts}).status_code == 200
        stage, disturbances = Stage.at(url, servers, chance, pair), dealt(chance, pair)
        for kill in range(KILLS):
            load = Load()
            load.begin(servers[0], token, [pushers[0].step, pushers[1].step, follower.step, ask])
            load.begin(servers[1], token, [pushers[2].step])
            wait_for_pushes(pushers, chance.randint(1, 6))
            disturb_and_kill(stage, next(disturbances))
            load.end()
            assert load.wrong == []
            for server in servers:
                server.start()
            with servers[0].client(token) as http:
                for pusher in pushers:
                    check_set(http, pusher, ids)
                check_feed(http, follower, pushers)
                if kill % (KILLS // 10) == 0:
                    check_whole_feed(http, follower)
            assert asyncio.run(row(url, INDEXES_AGREE)) == (0, 0)
        with servers[0].client(token) as http:
            check_whole_feed(http, follower)
            wait_for_a_run(http, url)
        check_facts(asyncio.run(facts(url)), servers[0].asked)
        check_log(servers[0].log.read_text() + servers[1].log.read_text())
        # Shown with --log-cli-level=INFO.
        log.info("%s pushes were acknowledged", sum(one.count for one in pushers))


def wait_for_pushes(pushers: list[Pusher], number: int) -> None:
    """Return when so many more pushes were acknowledged, however slow the machine is."""
    wanted = sum(one.count for one in pushers) + number
    until(lambda: sum(one.count for one in pushers) >= wanted, TAKEN_OVER)


def disturb_and_kill(stage: Stage, disturbance: Disturbance) -> None:
    """Let something happen at a random moment, and kill both servers during it or after it."""
    log.info("%s", disturbance.act.__name__)
    chance = stage.chance
    time.sleep(chance.uniform(0.05, 0.6))  # the moment at which it begins
    with ThreadPoolExecutor(1) as thread:
        happening = thread.submit(disturbance.act, stage)
        if disturbance.of_servers:
            happening.result()
        time.sleep(chance.uniform(0.05, 1.5))  # the moment of the death
        for server in chance.sample(list(stage.servers), 2):
            server.stop(signal.SIGKILL)
            time.sleep(chance.uniform(0.0, 0.1))  # and that of the other
        happening.result()


def check_log(text: str) -> None:
    """No line tells of a bug."""
    assert [line for line in text.splitlines() if '.failed"' in line] == []


def check_set(http: httpx2.Client, pusher: Pusher, ids: dict[str, str]) -> None:
    """The set is one that was sent, whole, and no older than what was acknowledged."""
    if not pusher.sent:
        return
    answer = http.get(f"{PUSH}/sets/{pusher.set_id}")
    if answer.status_code == 404:
        assert pusher.acknowledged == 0
        return
    items, revision = answer.json()["items"], int(answer.headers["etag"].strip('"'))
    [version] = {item["entity"]["spec"]["version"] for item in items}
    assert pusher.acknowledged <= int(version.rpartition("-")[2]) <= pusher.sent
    assert revision >= pusher.revision
    assert len(items) == ENTITIES
    for item in items:
        assert ids.setdefault(item["entityRef"], item["id"]) == item["id"]
    found = http.get("/api/catalog/entities", params={"filter": f"spec.version={version}"}).json()
    facets = http.get("/api/catalog/entity-facets", params={"facet": "spec.version"}).json()
    counts = {one["value"]: one["count"] for one in facets["facets"]["spec.version"]}
    assert Counter(one["metadata"]["uid"] for one in found) == Counter(one["id"] for one in items)
    assert counts[version] == ENTITIES
    pusher.sent = pusher.acknowledged = int(version.rpartition("-")[2])
    pusher.revision = revision


def check_feed(http: httpx2.Client, follower: Follower, pushers: list[Pusher]) -> None:
    """What was told while processes died is each event once and in order."""

    # Events get their places after the commit, by whichever process comes to it first.
    pushed = [one for one in pushers if one.revision]

    def has_all() -> bool:
        follower.step(http)
        return all(pushed_by(follower, one)[-1:] == [one.revision] for one in pushed)

    until(has_all, TAKEN_OVER)
    for pusher in pushers:
        assert pushed_by(follower, pusher) == list(range(1, pusher.revision + 1))


def check_whole_feed(http: httpx2.Client, follower: Follower) -> None:
    """Who read along while processes died was told what the whole feed tells, and nothing twice."""
    whole = Follower()
    while len(whole.told) < len(follower.told):
        more = whole.step(http)
        assert more or len(whole.told) >= len(follower.told)
    told = [event["id"] for event in follower.told]
    assert [event["id"] for event in whole.told][: len(told)] == told
    assert len(set(told)) == len(told)


def pushed_by(reader: Follower, pusher: Pusher) -> list[int]:
    """The revisions of the pusher's set, in the order in which the feed tells of them."""
    return [
        event["data"]["revision"]
        for event in reader.told
        if event["type"] == "set.replaced" and event["data"]["set"] == pusher.set_id
    ]


def wait_for_a_run(http: httpx2.Client, database_url: str) -> None:
    """No run is stuck: those under way end, and another one begins and ends."""
    last = "SELECT COALESCE(MAX(id), 0), 0 FROM runs"
    newest = asyncio.run(row(database_url, last))[0]
    ended = f"SELECT COUNT(*), 0 FROM runs WHERE id > {newest} AND finished_at IS NOT NULL"  # noqa: S608 - ours
    stuck = f"SELECT COUNT(*), 0 FROM runs WHERE id <= {newest} AND finished_at IS NULL"  # noqa: S608 - ours

    def has_run() -> bool:
        if asyncio.run(row(database_url, stuck))[0] or not asyncio.run(row(database_url, ended))[0]:
            ask(http)
            return False
        return True

    until(has_run, TAKEN_OVER, pause=0.5)


def check_facts(stored: list[tuple[int, str]], asked: Path) -> None:
    """Of what was asked for at once either all facts are stored, once, or none."""
    lines = [line.split() for line in asked.read_text().splitlines()]
    batches = {int(number): sorted(targets) for number, *targets in lines}
    found: dict[int, list[str]] = {}
    for number, name in stored:
        found.setdefault(number, []).append(f"acme/{name}")
    assert found
    parts = {number: got for number, got in found.items() if sorted(got) != batches[number]}
    assert parts == {}


async def row(database_url: str, sql: str) -> tuple[Any, ...]:
    database = await open_database(database_url, connections=3)
    try:
        found = await database.one(sql)
    finally:
        await database.close()
    assert found is not None
    return found


async def facts(database_url: str) -> list[tuple[int, str]]:
    """Every number in history, and the name of the entity."""
    database = await open_database(database_url, connections=3)
    try:
        rows = await database.all(
            "SELECT h.facts, e.name FROM facts_history h JOIN entities e ON e.id = h.entity_id "
            "WHERE h.source_id = 'vendor'"
        )
    finally:
        await database.close()
    start = '"codehost.issues.open":'
    return [(int(text.partition(start)[2].partition(",")[0]), name) for text, name in rows]
