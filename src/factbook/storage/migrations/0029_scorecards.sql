-- Scorecards: levels over checks (factbook.checks). A version in effect has a slot: the place of its
-- four bytes in the levels of every entity, counted from 1. While all entities are graded anew, as
-- after a publication, a pending slot is filled; readers see the other until then.
CREATE TABLE scorecards (
    id SORTED_TEXT PRIMARY KEY,
    draft TEXT,                   -- JSON; NULL: everything is published
    published TEXT,               -- JSON; NULL: never published
    pending TEXT,                 -- JSON of the version for which entities are graded
    version TEXT NOT NULL,
    pending_version TEXT,
    slot INTEGER UNIQUE,
    pending_slot INTEGER UNIQUE,
    graded_up_to INTEGER,         -- the last entity that was graded for the pending slot
    graded_at INTEGER,            -- when the grading in effect began: checks counted as of then
    pending_graded_at INTEGER,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    published_at INTEGER,
    published_by TEXT
);
CREATE TABLE scorecard_versions (
    scorecard_id SORTED_TEXT NOT NULL,
    version TEXT NOT NULL,
    document TEXT NOT NULL,
    published_at INTEGER NOT NULL,
    published_by TEXT NOT NULL,
    PRIMARY KEY (scorecard_id, version)
) WITHOUT ROWID;

-- Where each entity stands, narrow for scans; what it is counted by is beside it.
CREATE TABLE scorecard_levels (
    entity_id INTEGER PRIMARY KEY,
    owner SORTED_TEXT NOT NULL,   -- the target of ownedBy, '' without one
    system SORTED_TEXT NOT NULL,  -- that of partOf, '' without one
    kind SORTED_TEXT NOT NULL,
    levels BLOB NOT NULL          -- four bytes for each slot (checks/levels.py)
);

-- Entities by level, 0 below the first, changed with the levels. A row may have nothing but zeros.
CREATE TABLE scorecard_counts (
    slot INTEGER NOT NULL,
    owner SORTED_TEXT NOT NULL,
    system SORTED_TEXT NOT NULL,
    kind SORTED_TEXT NOT NULL,
    level INTEGER NOT NULL,
    entities INTEGER NOT NULL,
    scored INTEGER NOT NULL,      -- of them have a score
    score INTEGER NOT NULL,       -- the sum of those, in percent
    PRIMARY KEY (slot, owner, system, kind, level)
) WITHOUT ROWID;

-- The sums of a group and of all below it, or of an owner outside every group, at the end of each
-- day on which they differ from the row before. '*' is everybody.
CREATE TABLE scorecard_days (
    scorecard_id SORTED_TEXT NOT NULL,
    owner SORTED_TEXT NOT NULL,
    day INTEGER NOT NULL,         -- since 1970-01-01
    levels TEXT NOT NULL,         -- JSON: entities by the id of the level, '' below the first
    scored INTEGER NOT NULL,
    score INTEGER NOT NULL,
    PRIMARY KEY (scorecard_id, owner, day)
) WITHOUT ROWID;

CREATE TABLE exemptions (
    id SORTED_TEXT PRIMARY KEY,
    check_id SORTED_TEXT,         -- or scorecard_id, and the other is NULL
    scorecard_id SORTED_TEXT,
    entity_ref SORTED_TEXT NOT NULL,
    reason TEXT NOT NULL,
    link TEXT,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER,              -- NULL: never
    state SORTED_TEXT NOT NULL,   -- requested, approved, denied, revoked or expired
    requested_by TEXT NOT NULL,
    requested_at INTEGER NOT NULL,
    decided_by TEXT,
    decided_at INTEGER,
    comment TEXT,
    warned_at INTEGER             -- when its end was announced
);
CREATE INDEX exemptions_by_entity ON exemptions (entity_ref, state);
CREATE INDEX exemptions_by_state ON exemptions (state, requested_at, id);
CREATE INDEX exemptions_by_end ON exemptions (ends_at);
