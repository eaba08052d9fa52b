"""Diagnosis of an installation, without changing anything.

Each finding has the state of one item, and advice.
"""
