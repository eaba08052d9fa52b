-- The time of the row of the same source and entity that has the long values which this row leaves
-- out; NULL: it leaves none out (facts/long_values.py).
ALTER TABLE facts_history ADD COLUMN held_at INTEGER;
