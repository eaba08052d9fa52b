"""The service inside a test does nothing that the test doesn't ask for."""

import asyncio
import inspect
from pathlib import Path

import pytest

import factbook
from tests.service import Service, component
from tests.waiting import soon
from tests.web.visiting import signed_in

SOURCE = str(Path(factbook.__file__).parent)
# Tasks that wait for longer than a test takes.
WAITING = {"UsageMeter._write_later": "writes the calls counted, 60 seconds after the first"}


def running() -> set[str]:
    """The coroutines of Factbook that run as tasks of their own."""
    coroutines = [task.get_coro() for task in asyncio.all_tasks()]
    return {
        coroutine.__qualname__
        for coroutine in coroutines
        if inspect.iscoroutine(coroutine) and coroutine.cr_code.co_filename.startswith(SOURCE)
    }


async def only_waits() -> bool:
    return running() == WAITING.keys()


@pytest.mark.slow
async def test_no_worker_collects_sweeps_sends_or_evaluates_beside_a_test(service: Service) -> None:
    assert (await service.push("all", component("app"))).status_code == 200
    await service.facts("get-data-source-discovery")
    visitor = await signed_in(service)
    await visitor.text("/catalog/component/default/app")
    # What a request leaves to be written goes on behind its answer, and ends.
    await soon(only_waits)
