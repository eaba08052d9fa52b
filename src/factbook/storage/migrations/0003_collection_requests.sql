-- Entities whose facts somebody asked to be collected now.
CREATE TABLE collection_requests (
    entity_id INTEGER PRIMARY KEY,
    requested_by TEXT NOT NULL,
    requested_at INTEGER NOT NULL
);
