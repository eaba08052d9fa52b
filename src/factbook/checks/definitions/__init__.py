"""Definitions of checks and scorecards: parsing, and validation against what they refer to."""
