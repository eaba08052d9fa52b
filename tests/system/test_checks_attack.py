"""Two servers on one PostgreSQL under random calls: what they leave equals a full evaluation."""

import asyncio
import logging
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from factbook.catalog.filters import Matcher
from factbook.catalog.store import stored_entities
from factbook.checks import state
from factbook.checks.definitions import exemption_store
from factbook.checks.results.level_store import find_owner
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.facts import store
from factbook.storage import Database
from factbook.storage.database_url import open_database
from tests.checks import test_scorecard_histories as gradings
from tests.checks import verification
from tests.checks.verification import StoredStates
from tests.processes import serving
from tests.system.checks_attack import SENT, Attacker, source
from tests.system.disturbances import database
from tests.waiting import LONG

pytestmark = [pytest.mark.system, pytest.mark.timeout(7200)]

log = logging.getLogger(__name__)

SOAK = bool(os.environ.get("FACTBOOK_SOAK"))
SECONDS = 900 if SOAK else 10
ROUND = 40 if SOAK else 10
EXEMPTED = frozenset({state.PASS, state.FAIL, state.UNKNOWN})


def test_what_two_servers_leave_of_any_calls_equals_a_full_evaluation(tmp_path: Path) -> None:
    told: Counter[str] = Counter()
    with (
        database("postgresql", tmp_path) as (url, _),
        serving(url, tmp_path) as first,
        serving(url, tmp_path) as second,
        ExitStack() as stack,
    ):
        tokens = [first.token("--user", f"user:default/{name}") for name in ("ann", "bob")]
        clients = [
            stack.enter_context(one.client(token)) for one in (first, second) for token in tokens
        ]
        for id_ in SENT:
            clients[0].put(f"/api/tech-insights/v1/data-sources/{id_}", json=source(id_))
            clients[0].post(f"/api/tech-insights/v1/data-sources/{id_}/publish")
        people = [Attacker(one, str(place)) for place, one in enumerate(clients)]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with ThreadPoolExecutor(len(people)) as pool:
                list(pool.map(lambda one: attack(one, ROUND), people))
            asyncio.run(verified(url))
        for one in people:
            told.update(one.told)
        text = first.log.read_text() + second.log.read_text()
    # Shown with --log-cli-level=INFO.
    log.info("%s", dict(sorted(told.items())))
    assert [line for line in text.splitlines() if '.failed"' in line or '"error"' in line] == []


def attack(one: Attacker, seconds: float) -> None:
    """Let a client do what it likes for some time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        one.step()


async def verified(url: str) -> None:
    """Wait until all is stored that a full evaluation finds."""
    opened = await open_database(url, connections=2)
    end = time.monotonic() + 2 * LONG
    try:
        while True:
            try:
                now = int(time.time() * 1000)
                await verify(opened, now)
                await gradings.verify(opened, now)
                return
            except AssertionError:
                if time.monotonic() > end:
                    raise
            await asyncio.sleep(1)
    finally:
        await opened.close()


async def verify(opened: Database, now: int) -> None:
    """Compare states, exemptions among them, and their counts with a full evaluation."""
    known = await opened.write(verification.current)
    rows = await opened.all(
        *stored_entities.entity_page_sql(stored_entities.EVERY_ENTITY, 0, 100_000)
    )
    entities = stored_entities.decode_collectable(rows)
    ids = [id_ for id_, _, _ in entities]
    exempt = await opened.write(lambda tx: exemption_store.list_holding_exemptions(tx, ids, now))
    stored = {
        row[0]: row[1:]
        for row in await opened.all("SELECT entity_id, owner, states FROM check_states")
    }
    found = []
    for id_, ref, document in entities:
        facts = await store.list_latest(opened, id_)
        held = exempt.get(id_, exemption_store.NOT_EXEMPT).checks
        wanted: dict[str, int] = {}
        matcher = Matcher(document)
        for one in known.checks:
            if one.is_pending:
                continue
            if not one.compiled.applies(matcher):
                wanted[one.id] = state.OUT
                continue
            subject = CheckedEntity(ref, document, facts, wanted)
            value = one.compiled.evaluate(subject, now).state
            if one.id in held and value in EXEMPTED:
                value |= state.EXEMPT
            wanted[one.id] = value
        owner, states = stored.pop(id_, ("", b""))
        has = {check: verification.byte(states, slot) for check, slot in known.slots.items()}
        assert has == wanted, (ref, has, wanted)
        if wanted:
            assert owner == find_owner(document), ref
        found.append(StoredStates(owner, has))
    assert not stored, "states of entities that are not there"
    assert await verification.counts(opened) == verification.recounted(known, found)
    pending: Any = await opened.all("SELECT id FROM checks WHERE pending_slot IS NOT NULL")
    assert not pending
