-- A collection of one source: of every entity it is about, or of some that were asked for.
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    source_id SORTED_TEXT NOT NULL,
    whole INTEGER NOT NULL,         -- 1: of every entity
    reason TEXT NOT NULL,           -- cadence or asked
    started_at INTEGER NOT NULL,
    deadline INTEGER NOT NULL,      -- what is not done by then is given up
    finished_at INTEGER,
    batches INTEGER NOT NULL,       -- made so far
    entities INTEGER NOT NULL,
    covered INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    rate_limit_left INTEGER,
    error TEXT
);
INSERT INTO counters (name, value) VALUES ('run', 0);
-- One collection of everything at a time.
CREATE UNIQUE INDEX runs_under_way ON runs (source_id) WHERE whole = 1 AND finished_at IS NULL;
CREATE INDEX runs_by_source ON runs (source_id, whole, id);

-- What a run still has to do. A batch that is done is deleted together with storing its facts.
CREATE TABLE batches (
    run_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    queue SORTED_TEXT NOT NULL,
    work TEXT NOT NULL,
    attempts INTEGER NOT NULL,      -- begun so far
    next_at INTEGER NOT NULL,       -- not before
    holder TEXT NOT NULL,           -- the worker that has it until held_until
    held_until INTEGER NOT NULL,
    PRIMARY KEY (run_id, number)
) WITHOUT ROWID;
CREATE INDEX batches_by_queue ON batches (queue, next_at);

-- The calls of one credential are governed together.
CREATE TABLE queues (
    name SORTED_TEXT PRIMARY KEY,
    at_once INTEGER NOT NULL,       -- batches under way at the same time, of all workers
    not_before INTEGER NOT NULL,    -- rate limited until then
    served_at INTEGER NOT NULL
);

-- What outlives the runs: when a source last brought something, and since when it does not.
CREATE TABLE source_health (
    source_id SORTED_TEXT PRIMARY KEY,
    succeeded_at INTEGER,
    down_since INTEGER,
    credential_expires_at INTEGER   -- as the vendor's answers say
);

-- Earlier answers that integrations keep to ask for less: validators, trees, probes.
CREATE TABLE memories (
    source_id SORTED_TEXT NOT NULL,
    key SORTED_TEXT NOT NULL,
    value BLOB NOT NULL,
    updated_at INTEGER NOT NULL,
    forget_at INTEGER,
    PRIMARY KEY (source_id, key)
) WITHOUT ROWID;
CREATE INDEX memories_by_end ON memories (forget_at);

-- Values that a failing upstream left as they were: the time of each, by fact.
ALTER TABLE facts_latest ADD COLUMN kept TEXT NOT NULL DEFAULT '{}';
