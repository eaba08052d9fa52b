"""The audit log: entries, and their export."""
