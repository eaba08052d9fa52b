"""Scheduling of work across processes, independent of sources."""
