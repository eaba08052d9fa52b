"""Factbook: an open software catalog with facts about its entities, queried at one endpoint."""

__version__ = "0.1.0"
