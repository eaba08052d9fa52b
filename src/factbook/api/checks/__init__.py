"""The interface of checks, scorecards, their results and exemptions."""
