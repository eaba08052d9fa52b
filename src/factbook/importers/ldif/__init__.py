"""Importer of LDIF files: the people and groups of a directory."""
