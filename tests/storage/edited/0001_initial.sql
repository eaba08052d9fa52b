-- Times are milliseconds since the epoch, UTC. JSON is TEXT. References are canonical.

CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
);
INSERT INTO counters (name, value) VALUES ('entity', 0), ('set', 0), ('search_key', 0);

-- CATALOG

CREATE TABLE sets (
    id INTEGER PRIMARY KEY,
    name SORTED_TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    item_count INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE TABLE entities (
    id INTEGER PRIMARY KEY,
    uid SORTED_TEXT NOT NULL UNIQUE,
    ref SORTED_TEXT NOT NULL UNIQUE,
    kind SORTED_TEXT NOT NULL,
    namespace SORTED_TEXT NOT NULL,
    name SORTED_TEXT NOT NULL,
    set_id INTEGER REFERENCES sets (id),
    etag TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    compliance INTEGER NOT NULL,  -- the bits of catalog/compliance.py
    document TEXT NOT NULL,       -- as pushed, with the service's annotations
    relations TEXT NOT NULL,      -- both directions, as every read shows them
    problems TEXT                 -- what a known kind's spec misses: status.items
);
-- Covers reading the catalog's own facts of a whole kind.
CREATE INDEX entities_by_kind ON entities (kind, ref, compliance, updated_at);
CREATE INDEX entities_by_namespace ON entities (namespace, ref);
CREATE INDEX entities_by_name ON entities (name);
CREATE INDEX entities_by_set ON entities (set_id);

-- The order of a set's items.
CREATE TABLE set_items (
    set_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    entity_id INTEGER NOT NULL,
    PRIMARY KEY (set_id, position)
) WITHOUT ROWID;

CREATE TABLE search_keys (
    id INTEGER PRIMARY KEY,
    key SORTED_TEXT NOT NULL UNIQUE
);

-- One row for each flattened key and value, both lower case. No index by entity: the old rows of
-- an entity are derived from its old document.
CREATE TABLE search (
    key_id INTEGER NOT NULL,
    value SORTED_TEXT NOT NULL,
    entity_id INTEGER NOT NULL,
    PRIMARY KEY (key_id, value, entity_id)
) WITHOUT ROWID;

-- Derived from spec, as the source states them; the other direction is found by target.
CREATE TABLE relations (
    source_id INTEGER NOT NULL,
    type SORTED_TEXT NOT NULL,
    target_ref SORTED_TEXT NOT NULL,
    PRIMARY KEY (source_id, type, target_ref)
) WITHOUT ROWID;
CREATE INDEX relations_by_target ON relations (target_ref, type, source_id);

CREATE TABLE revisions (
    set_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    added INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    restored INTEGER,  -- the revision that this one put back
    PRIMARY KEY (set_id, number)
) WITHOUT ROWID;

-- What a revision changed: the document and the place that each entity had before (none: added).
CREATE TABLE revision_changes (
    set_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    ref SORTED_TEXT NOT NULL,
    position INTEGER,
    document TEXT,
    PRIMARY KEY (set_id, number, ref)
) WITHOUT ROWID;

-- Entities that are gone from every read but keep their id and facts for some days.
CREATE TABLE removed_entities (
    ref SORTED_TEXT PRIMARY KEY,
    id INTEGER NOT NULL,
    uid TEXT NOT NULL,
    removed_at INTEGER NOT NULL
);
CREATE INDEX removed_entities_by_time ON removed_entities (removed_at);

-- FACTS

CREATE TABLE facts_latest (
    source_id SORTED_TEXT NOT NULL,
    entity_id INTEGER NOT NULL,
    facts TEXT NOT NULL,
    reasons TEXT NOT NULL,
    version TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (source_id, entity_id)
);
CREATE INDEX facts_latest_by_entity ON facts_latest (entity_id);

CREATE TABLE facts_history (
    source_id SORTED_TEXT NOT NULL,
    entity_id INTEGER NOT NULL,
    written_at INTEGER NOT NULL,
    facts TEXT NOT NULL,
    reasons TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (source_id, entity_id, written_at)
) WITHOUT ROWID;
CREATE INDEX facts_history_by_entity ON facts_history (entity_id);

-- ACCESS

CREATE TABLE tokens (
    id SORTED_TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash SORTED_TEXT NOT NULL UNIQUE,
    owner SORTED_TEXT NOT NULL,
    permissions TEXT NOT NULL,
    created_by SORTED_TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER,
    revoked_at INTEGER
);

-- SCHEDULING

-- Work that one process at a time does for all.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    held_until INTEGER NOT NULL
);
