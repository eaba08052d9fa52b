-- The last collection that found what the row says, if it is a later one. That of the newest row of
-- an entity is facts_latest.written_at (facts/history.py).
ALTER TABLE facts_history ADD COLUMN confirmed_at INTEGER;

-- When all old rows of a source that keeps a time were looked at last (facts/retention.py).
ALTER TABLE history_trims ADD COLUMN passed_at INTEGER;
