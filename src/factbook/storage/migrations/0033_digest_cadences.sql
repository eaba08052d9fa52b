-- When a digest is sent, and what became of it. `next_at` stays as it was set until the digest of
-- that time arrived, so that what is sent again is about the same period; an owner of "" is everybody.
ALTER TABLE digests ADD COLUMN cadence TEXT NOT NULL DEFAULT 'weekly';  -- or daily
ALTER TABLE digests ADD COLUMN day TEXT NOT NULL DEFAULT 'monday';      -- of a weekly one
ALTER TABLE digests ADD COLUMN hour INTEGER NOT NULL DEFAULT 8;
ALTER TABLE digests ADD COLUMN time_zone TEXT NOT NULL DEFAULT 'UTC';
ALTER TABLE digests ADD COLUMN held_until INTEGER NOT NULL DEFAULT 0;   -- no process sends before
ALTER TABLE digests ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;     -- since the last success
ALTER TABLE digests ADD COLUMN sent_at INTEGER;                         -- when one last arrived
ALTER TABLE digests ADD COLUMN levels TEXT NOT NULL DEFAULT '{}';       -- as they were last told
