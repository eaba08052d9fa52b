"""What tests of collecting can ask for."""

import pytest

from tests.collection.world import World
from tests.no_retry_delay import no_pauses
from tests.service import Service

__all__ = ["no_pauses", "world"]


@pytest.fixture
def world(service: Service) -> World:
    return World(service)
