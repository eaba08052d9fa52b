"""Definitions of checks and scorecards: parsing, and validation of their references."""
