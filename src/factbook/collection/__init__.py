"""Collection of facts: planned, begun and worked off in batches."""
