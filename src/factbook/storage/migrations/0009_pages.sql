-- What changed lately, over all sets.
CREATE INDEX revisions_by_time ON revisions (created_at);
