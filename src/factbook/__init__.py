"""Factbook: an open catalog of software and the facts about it, asked through one endpoint."""

__version__ = "0.1.0"
