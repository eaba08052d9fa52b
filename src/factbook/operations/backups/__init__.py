"""Backups of a SQLite database while it is used, and putting one back.

A backup is one SQLite file: the database as it was at one moment, and the key of its tokens and
secrets in a table of its own, without which it would be of little use.
"""
