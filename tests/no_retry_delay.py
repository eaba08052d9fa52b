"""Retries without pauses."""

from collections.abc import Iterator

import pytest
import stamina


@pytest.fixture(autouse=True)
def no_pauses() -> Iterator[None]:
    """Tries follow each other at once, at most three."""
    with stamina.set_testing(True, attempts=3, cap=True):
        yield
