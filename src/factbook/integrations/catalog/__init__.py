"""The catalog's own three sources: what every entity says about itself, read at the moment."""

from factbook.integrations.catalog.facts import SOURCES, answers, compliance, facts

__all__ = ["SOURCES", "answers", "compliance", "facts"]
