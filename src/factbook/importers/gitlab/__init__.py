"""Importer of GitLab groups: projects, groups and members."""
