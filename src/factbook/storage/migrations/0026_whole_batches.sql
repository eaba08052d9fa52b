-- 0: of a run that somebody asked for, whose batches come first. Those that were made before this, or
-- by a release that does not know it, come in the order of their runs.
ALTER TABLE batches ADD COLUMN whole INTEGER NOT NULL DEFAULT 1;
