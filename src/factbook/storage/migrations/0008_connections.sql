-- Connections that are made in the browser or over HTTP, beside those of the settings.
CREATE TABLE connections (
    name SORTED_TEXT PRIMARY KEY,
    options TEXT NOT NULL,   -- JSON, without secrets: of headers their names and when they were set
    secrets BLOB,            -- the values of the headers, sealed (auth/sealing.py)
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL
);
