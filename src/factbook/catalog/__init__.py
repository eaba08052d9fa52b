"""Entities: their references, rules, relations, sets and storage."""
