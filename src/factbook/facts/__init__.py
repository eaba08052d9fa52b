"""Data sources, the types of facts, the fixed metric shapes and the store of facts."""
