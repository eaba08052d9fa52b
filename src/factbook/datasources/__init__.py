"""Data sources: definitions, registry, connections and trials."""
