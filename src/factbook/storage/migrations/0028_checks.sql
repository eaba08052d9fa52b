-- Checks: rules over facts, evaluated for every entity (factbook.checks). Each published version has
-- a slot: the place of its byte in the states of every entity, counted from 1. A version that is
-- being published has a slot of its own, pending, until every entity is evaluated.
CREATE TABLE checks (
    id SORTED_TEXT PRIMARY KEY,
    draft TEXT,                   -- JSON; NULL: everything is published
    published TEXT,               -- JSON; NULL: never published
    pending TEXT,                 -- JSON of the version whose publication is under way
    version TEXT NOT NULL,
    pending_version TEXT,
    slot INTEGER UNIQUE,
    pending_slot INTEGER UNIQUE,
    evaluated_up_to INTEGER,      -- the last entity that the publication has evaluated
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    published_at INTEGER,
    published_by TEXT,
    in_effect_at INTEGER          -- when the published version became what readers see
);
CREATE TABLE check_versions (
    check_id SORTED_TEXT NOT NULL,
    version TEXT NOT NULL,
    document TEXT NOT NULL,
    published_at INTEGER NOT NULL,
    published_by TEXT NOT NULL,
    PRIMARY KEY (check_id, version)
);
-- Slots that no version uses any more, until their bytes are zero again.
CREATE TABLE retired_slots (
    slot INTEGER PRIMARY KEY,
    cleared_up_to INTEGER NOT NULL  -- the last entity whose byte is zero
);

CREATE TABLE check_states (
    entity_id INTEGER PRIMARY KEY,
    owner SORTED_TEXT NOT NULL,   -- the target of ownedBy, '' without one
    states BLOB NOT NULL,         -- a byte for each slot (checks/state.py); those left out are zero
    levels BLOB,                  -- of scorecards
    due_at INTEGER                -- when a state may change without a write
);
CREATE INDEX check_states_by_owner ON check_states (owner, entity_id);
CREATE INDEX check_states_by_due ON check_states (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE check_changes (
    id SERIAL_KEY,
    check_id SORTED_TEXT NOT NULL,
    entity_id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    before INTEGER NOT NULL,
    after INTEGER NOT NULL,
    why TEXT NOT NULL             -- JSON: what was written
);
CREATE INDEX check_changes_by_entity ON check_changes (entity_id, check_id, at);
CREATE INDEX check_changes_by_check ON check_changes (check_id, at);
CREATE INDEX check_changes_by_time ON check_changes (at, id);

-- Entities by slot, owner and state, changed with the states. A row may have nothing but zeros.
CREATE TABLE check_counts (
    slot INTEGER NOT NULL,
    owner SORTED_TEXT NOT NULL,
    passing INTEGER NOT NULL,
    failing INTEGER NOT NULL,
    undecided INTEGER NOT NULL,
    exempt INTEGER NOT NULL,
    inapplicable INTEGER NOT NULL,
    PRIMARY KEY (slot, owner)
) WITHOUT ROWID;

-- The same at the end of each day on which it differs from the row before.
CREATE TABLE check_days (
    check_id SORTED_TEXT NOT NULL,
    owner SORTED_TEXT NOT NULL,
    day INTEGER NOT NULL,         -- since 1970-01-01
    passing INTEGER NOT NULL,
    failing INTEGER NOT NULL,
    undecided INTEGER NOT NULL,
    exempt INTEGER NOT NULL,
    inapplicable INTEGER NOT NULL,
    PRIMARY KEY (check_id, owner, day)
) WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('checks', 0);
