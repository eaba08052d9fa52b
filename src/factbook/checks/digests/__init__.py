"""Digests of what changed, for a team and a period."""
