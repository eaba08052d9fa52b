"""Diagnosis of an installation from outside; nothing is changed.

Each module examines one topic, and reports the state of each item and the advice for it.
"""
