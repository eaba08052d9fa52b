"""Trials and previews: what a check, a scorecard or a write would change. Nothing stays."""
