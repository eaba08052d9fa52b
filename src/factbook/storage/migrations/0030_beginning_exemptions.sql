-- When the entity was evaluated for the beginning of its exemption.
ALTER TABLE exemptions ADD COLUMN began_at INTEGER;
