"""Custom sources: integrations that users define in documents instead of code."""
