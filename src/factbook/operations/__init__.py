"""Operations: server, local commands, doctor and backups."""
