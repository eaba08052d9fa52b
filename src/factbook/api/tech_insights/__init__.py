"""Data sources, facts and connections over HTTP."""
