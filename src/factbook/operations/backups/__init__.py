"""Online backups of a SQLite database, and their restoration.

A backup is one SQLite file: the database as of one moment and, in a table of its own, the key of
its tokens and secrets, without which the backup would be of little use.
"""
