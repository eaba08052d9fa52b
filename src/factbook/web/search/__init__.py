"""The search for anything: entities, people, checks, facts, sources and pages."""
