"""What tests of collecting can ask for."""

import pytest

from tests.collecting.world import World
from tests.service import Service


@pytest.fixture
def world(service: Service) -> World:
    return World(service)
