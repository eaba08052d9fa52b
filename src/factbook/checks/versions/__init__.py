"""Versions of checks and scorecards: drafts, what is in effect, and what is being published."""
