"""Importer of Gitea and Forgejo organizations: repositories, teams and members."""
