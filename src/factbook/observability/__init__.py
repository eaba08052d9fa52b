"""Metrics of a process, and traces of its requests, runs and statements."""
