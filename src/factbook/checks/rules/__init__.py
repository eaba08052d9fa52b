"""The language of rules: conditions over facts, their operators, and the entity that they ask."""
