"""Evaluation of one check for one entity, and the explanation of its result."""
