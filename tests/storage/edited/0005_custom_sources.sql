-- Sources that users define. A document is one in the form of discovery, with its configuration.
CREATE TABLE data_sources (
    id SORTED_TEXT PRIMARY KEY,
    draft TEXT,              -- what is not published yet
    published TEXT,
    version TEXT NOT NULL,   -- of what is published; 0.0.0 before the first time
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    published_at INTEGER,
    published_by TEXT
);
-- Raised by every change.
INSERT INTO counters (name, value) VALUES ('data_source', 0);

CREATE TABLE data_source_versions (
    source_id SORTED_TEXT NOT NULL,
    version TEXT NOT NULL,
    document TEXT NOT NULL,
    published_at INTEGER NOT NULL,
    published_by TEXT NOT NULL,
    PRIMARY KEY (source_id, version)
) WITHOUT ROWID;

-- The history of an entity, newest first, and all of an entity when it is forgotten.
CREATE INDEX facts_history_by_entity_and_time
    ON facts_history (entity_id, written_at, source_id);
DROP INDEX facts_history_by_entity;
-- What was written since some time: by every source, and by one.
CREATE INDEX facts_history_by_time ON facts_history (written_at, source_id, entity_id);
CREATE INDEX facts_history_by_source ON facts_history (source_id, written_at, entity_id);
