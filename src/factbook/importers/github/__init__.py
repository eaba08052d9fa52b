"""Importer of GitHub organizations: repositories, teams and members."""
