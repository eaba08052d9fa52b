"""Hosts of a test's own, which say what clients are."""

from tests.outbound.conftest import serve

__all__ = ["serve"]
