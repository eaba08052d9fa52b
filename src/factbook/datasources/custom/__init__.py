"""Custom sources: definitions that users write instead of code, turned into integrations."""
