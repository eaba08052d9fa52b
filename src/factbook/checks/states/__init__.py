"""Stores of results: the states of entities, their changes, and the counts of both."""
