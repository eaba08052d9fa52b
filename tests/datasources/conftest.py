"""Servers of a test's own, and sources beside each other that ask them."""

import pytest

from tests.datasources.hostile import Beside
from tests.no_retry_delay import no_pauses
from tests.outbound.conftest import Serve, serve
from tests.service import Service

__all__ = ["beside", "no_pauses", "serve"]


@pytest.fixture
def beside(service: Service, serve: Serve) -> Beside:
    """Runs a source of a test's choice beside a good one."""
    return Beside(service, serve)
