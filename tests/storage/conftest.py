"""Databases of tests of storage: they begin without a schema."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import empty_database


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without anything."""
    yield from empty_database(request, tmp_path)
