-- What is known of each part that an importer reads (importers/part_store.py).
CREATE TABLE import_parts (
    importer SORTED_TEXT NOT NULL,
    part SORTED_TEXT NOT NULL,
    state SORTED_TEXT NOT NULL,   -- complete, partial or held
    read_at INTEGER NOT NULL,
    complete_at INTEGER,          -- none: it was never read whole
    items INTEGER NOT NULL,
    problem_count INTEGER NOT NULL,
    problems TEXT NOT NULL,       -- JSON: origin, message, file and line of the first of them
    held TEXT NOT NULL,           -- JSON: references of removals that wait for a person
    reason TEXT NOT NULL,         -- why they wait; empty: none does
    spared TEXT NOT NULL,         -- JSON: references that stay though they were not found
    rights TEXT NOT NULL,         -- JSON: what the last believed reading could see
    seen_rights TEXT NOT NULL,    -- JSON: what the last reading could see
    PRIMARY KEY (importer, part)
) WITHOUT ROWID;
