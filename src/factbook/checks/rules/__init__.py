"""The rule language: conditions over facts, operators, and the evaluated entity."""
