"""Leases: one holder at a time, renewed by it, taken over once they lapse."""

import asyncio

from factbook.scheduling.lease import claim_lease, release_lease
from factbook.storage import Database


async def test_one_of_many_claimants_gets_the_lease(database: Database) -> None:
    claims = [
        claim_lease(database, "sweep", f"worker-{n}", now=1_000, duration=500) for n in range(8)
    ]
    assert sum(await asyncio.gather(*claims)) == 1


async def test_the_holder_renews_and_others_wait(database: Database) -> None:
    assert await claim_lease(database, "sweep", "a", now=1_000, duration=500)
    assert await claim_lease(database, "sweep", "a", now=1_400, duration=500)
    assert not await claim_lease(database, "sweep", "b", now=1_899, duration=500)


async def test_a_lapsed_lease_is_taken_over(database: Database) -> None:
    assert await claim_lease(database, "sweep", "a", now=1_000, duration=500)
    assert await claim_lease(database, "sweep", "b", now=1_500, duration=500)
    assert not await claim_lease(database, "sweep", "a", now=1_501, duration=500)


async def test_leases_of_different_names_are_independent(database: Database) -> None:
    assert await claim_lease(database, "sweep", "a", now=1_000, duration=500)
    assert await claim_lease(database, "sample", "b", now=1_000, duration=500)


async def test_only_the_holder_gives_a_lease_back(database: Database) -> None:
    assert await claim_lease(database, "sweep", "a", now=1_000, duration=500)
    await release_lease(database, "sweep", "b")
    assert not await claim_lease(database, "sweep", "b", now=1_001, duration=500)
    await release_lease(database, "sweep", "a")
    assert await claim_lease(database, "sweep", "b", now=1_002, duration=500)
