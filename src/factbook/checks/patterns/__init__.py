"""Bounds on regular expressions: how long a search may take, known from the pattern alone."""
