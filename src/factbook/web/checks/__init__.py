"""Pages of scorecards, checks and exemptions."""
