"""Parts of importers that every code host has: repositories, their files, and whose they are."""
