"""Operation of the service: server, commands on the database, doctor and backups."""
