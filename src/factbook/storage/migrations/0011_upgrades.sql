-- Which release applied each migration, and the number of the newest migration that a process has to
-- know to work on the schema since then (none: as before).
ALTER TABLE schema_migrations ADD COLUMN release TEXT;
ALTER TABLE schema_migrations ADD COLUMN works_from INTEGER;
