"""Servers of a test's own."""

from tests.sources.http.conftest import serve

__all__ = ["serve"]
