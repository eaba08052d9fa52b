"""Levels of entities: their grading, and the rollups over owners, systems and labels."""
