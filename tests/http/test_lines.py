"""However requests come, wait, are refused and hang up: no place is lost, and none is made up."""

import asyncio
import random
import time

import pytest

from factbook.errors import OverloadedError
from factbook.http.admission import Admission
from factbook.http.requests import Request
from factbook.observability.metrics import Metrics
from tests.api.test_overload import request

PLACES = 3
MOST = 40


class Client:
    """A request that is let in or refused, or hangs up, and counts while it is worked on."""

    def __init__(self, admission: Admission, chance: random.Random) -> None:
        self._admission = admission
        self._chance = chance

    async def ask(self, under_way: set[Request]) -> None:
        this = request()
        # Some have come so long ago that they are refused at the next look.
        came = time.perf_counter() - self._chance.choice((0, 0, 60))
        await self._admission.enter(this, came, writes=False)
        try:
            under_way.add(this)
            assert len(under_way) <= PLACES
            await self._turns()
            under_way.discard(this)
            async with this.aside():
                await self._turns()
            under_way.add(this)
            assert len(under_way) <= PLACES
            await self._turns()
        finally:
            under_way.discard(this)
            self._admission.leave(this)

    async def _turns(self) -> None:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)


async def test_no_place_is_lost_and_none_is_made_up(subtests: pytest.Subtests) -> None:
    for seed in range(60):
        with subtests.test(seed=seed):
            chance = random.Random(seed)
            admission = Admission(PLACES, 1024, Metrics())
            under_way: set[Request] = set()
            asking = [
                asyncio.ensure_future(Client(admission, chance).ask(under_way)) for _ in range(MOST)
            ]
            for one in chance.sample(asking, MOST // 2):
                for _ in range(chance.randrange(3)):
                    await asyncio.sleep(0)
                one.cancel()
            for found in await asyncio.gather(*asking, return_exceptions=True):
                assert found is None or isinstance(
                    found, (asyncio.CancelledError, OverloadedError)
                ), found
            assert not under_way
            for _ in range(PLACES):
                await asyncio.wait_for(
                    admission.enter(request(), time.perf_counter(), writes=False), 60
                )
            beyond = asyncio.ensure_future(
                admission.enter(request(), time.perf_counter(), writes=False)
            )
            await asyncio.sleep(0)
            assert not beyond.done()
            beyond.cancel()
