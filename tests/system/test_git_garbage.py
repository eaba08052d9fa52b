"""A Git host answers garbage for an hour; Git itself reads what it says."""

import random
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from factbook.clock import HOUR, MINUTE
from factbook.facts import store
from factbook.scheduling import runs
from tests.collection.tools import ToolWorld
from tests.fakes import garbage
from tests.fakes.git import FakeGit
from tests.integrations.git.asking import APP, HOST, folders, full
from tests.integrations.git.conftest import Make, fake, hosts, make, temporary
from tests.no_retry_delay import no_pauses
from tests.service import Service, component

__all__ = ["fake", "hosts", "make", "no_pauses", "temporary"]

pytestmark = [
    pytest.mark.system,
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
]

MOST_CALLS = 40


@pytest.mark.spec("faults.garbage-upstream")
async def test_an_hour_of_garbage_leaves_the_last_values_and_few_calls(
    service: Service, fake: FakeGit, make: Make, temporary: Path
) -> None:
    full(fake)
    asking, chance = make(fake), random.Random(3)
    world, source = ToolWorld(service, asking), asking.integration.source.id
    entity = component("app")
    entity["metadata"]["annotations"] = {
        "backstage.io/source-location": f"url:https://{HOST}/{APP}"
    }
    await world.run(entity)
    good = (await store.list_latest_by_ref(service.state.database, "component:default/app"))[source]
    calls = fake.requests.total()
    assert good.facts
    for kind in list(fake.requests):
        faults = list(garbage.whole(chance).values())
        fake.fail(kind, garbage.any_of(faults, chance), times=100_000)
    with capture_logs() as logs:
        for _ in range(3):
            await world.next_run()
            for _ in range(4):
                world.wait(service.time() + 10 * MINUTE)
                await world.collector.drain()
    found = (await store.list_latest_by_ref(service.state.database, "component:default/app"))[
        source
    ]
    assert found.facts == good.facts
    assert fake.requests.total() - calls <= MOST_CALLS * calls
    health = (await runs.fetch_health(service.state.database))[source]
    assert health.down_since is not None
    assert health.last is not None
    assert (health.last.error or "").startswith("upstream-error: ")
    assert [one for one in logs if one["event"].endswith(".failed")] == []
    assert folders() == []
    fake.recover()
    world.wait(service.time() + 2 * HOUR)
    await world.next_run()
    again = (await store.list_latest_by_ref(service.state.database, "component:default/app"))[
        source
    ]
    assert (again.facts, again.reasons) == (good.facts, good.reasons)
    assert again.written_at > good.written_at
