"""What tests of pushed facts are run with."""

import pytest

from tests.api.defining import define, pushed
from tests.service import Service, component, resource


@pytest.fixture
async def covered(service: Service) -> Service:
    """A service with three entities, and a source to push to."""
    pushed_set = await service.push("all", component("web"), component("api"), resource("db"))
    assert pushed_set.status_code == 200
    await define(service, pushed())
    return service
