"""What tests of the tools start with."""

import pytest

from factbook.integrations import SOURCES
from tests.conftest import StartService
from tests.service import Service, component, resource
from tests.tools.sources import COVERAGE, DRAFT, TREE


@pytest.fixture
async def recording(start: StartService) -> Service:
    """A service with three entities, and with sources of facts of every type."""
    service = await start(sources=[*SOURCES, COVERAGE, DRAFT, TREE])
    entities = component("payments"), component("orders"), resource("account")
    answer = await service.push("first", *entities)
    assert answer.status_code == 200, answer.text
    # As if it had been long ago: the entities are there, and no change tells of them.
    await service.state.database.write(lambda tx: tx.run("DELETE FROM revisions"))
    return service
