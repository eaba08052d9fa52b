"""Shared parts of every HTTP interface: requests, replies, authentication, metrics."""
