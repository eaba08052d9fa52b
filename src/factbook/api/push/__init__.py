"""Sets of entities over HTTP."""
