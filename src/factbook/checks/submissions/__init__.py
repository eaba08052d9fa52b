"""Submissions by people: definitions and exemptions, held against rights and references."""
