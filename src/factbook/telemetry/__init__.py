"""Logs and spans, for every room."""
