"""Results of checks: evaluation, grading, stores and queries."""
