"""Definitions that people write: documents with drafts and versions, whatever they define."""
