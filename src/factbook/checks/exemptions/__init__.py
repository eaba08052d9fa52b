"""Exemptions of entities from checks and scorecards, for a time."""
