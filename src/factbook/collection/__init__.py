"""Collection of facts: planning, starting and processing of runs, in batches."""
