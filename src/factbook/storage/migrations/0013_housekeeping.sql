-- SHA-256 of the text that was applied. Of migrations that were applied before, that of this
-- release's text: this file and the next bring the schema to it, whichever form they had.
ALTER TABLE schema_migrations ADD COLUMN sha256 TEXT;

-- Early databases have a form of 0005 without it.
CREATE TABLE IF NOT EXISTS history_trims (
    source_id SORTED_TEXT PRIMARY KEY,
    max_items INTEGER NOT NULL,
    trimmed_to INTEGER NOT NULL,
    late INTEGER
);

-- How each part of the housekeeping fared last (scheduling/housekeeping.py).
CREATE TABLE housekeeping (
    part SORTED_TEXT PRIMARY KEY,
    succeeded_at INTEGER,
    failed_at INTEGER,            -- none: the last round succeeded
    error TEXT
);

-- One row: the last time by which anything was trimmed, and the time of the clock while it is not
-- believed (scheduling/retention_clock.py).
CREATE TABLE retention_clock (
    id INTEGER PRIMARY KEY,
    trusted_at INTEGER NOT NULL,
    refused_at INTEGER
);
-- Releases before this one renewed their lease in each round, for 20 minutes.
INSERT INTO retention_clock (id, trusted_at)
    SELECT 1, held_until - 1200000 FROM leases WHERE name = 'housekeeping';
