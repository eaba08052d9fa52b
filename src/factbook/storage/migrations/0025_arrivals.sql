-- The first position in the feed of events behind which new entities are not collected yet
-- (collection/arrivals.py). What came before is collected by the cadences of the sources.
INSERT INTO counters (name, value)
SELECT 'collected_event', value + 1 FROM counters WHERE name = 'event';
