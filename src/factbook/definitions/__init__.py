"""User-written definitions of any kind: documents with drafts and versions."""
