-- Importers made in the browser, beside those of the settings (importers/importer_store.py).
CREATE TABLE importers (
    id SORTED_TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    options TEXT NOT NULL,   -- JSON, without secrets: of these when they were set, and their hosts
    secrets BLOB,            -- their values, sealed (auth/encryption.py)
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('importers', 0);
