-- What changed, told in the transaction that changed it. A row tells of one thing or of many of the
-- same topic. Its position in the feed is given after the commit (events/numbering.py), so that no
-- row comes in before one that was read already.
CREATE TABLE events (
    id SERIAL_KEY,
    position INTEGER,             -- none until it is numbered; without gaps
    at INTEGER NOT NULL,
    topic SORTED_TEXT NOT NULL,   -- set, entity, fact or source
    about SORTED_TEXT NOT NULL,   -- the name of the set, '' outside any; the id of the source
    content TEXT NOT NULL         -- JSON in the form of the topic (events/event.py)
);
CREATE UNIQUE INDEX events_by_position ON events (position);
CREATE INDEX events_to_number ON events (id) WHERE position IS NULL;
-- The last position that was given, and the last that was forgotten.
INSERT INTO counters (name, value) VALUES ('event', 0), ('event_forgotten', 0);

-- Where events are sent to. Those before the place next_position, next_item were tried.
CREATE TABLE webhooks (
    id SORTED_TEXT PRIMARY KEY,
    url TEXT NOT NULL,
    types TEXT NOT NULL,          -- JSON; an empty list is every type
    secret BLOB NOT NULL,         -- sealed (auth/sealing.py)
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    next_position INTEGER NOT NULL,
    next_item INTEGER NOT NULL,
    holder TEXT NOT NULL,         -- the process that sends for it until held_until
    held_until INTEGER NOT NULL,
    succeeded_at INTEGER,
    failed_at INTEGER,
    error TEXT,                   -- of the last failure
    disabled_at INTEGER
);

-- What was not delivered by the first try, as it is sent.
CREATE TABLE webhook_retries (
    webhook_id SORTED_TEXT NOT NULL,
    event_id SORTED_TEXT NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,    -- made so far
    next_at INTEGER,              -- none: given up
    error TEXT NOT NULL,
    PRIMARY KEY (webhook_id, event_id)
);
CREATE INDEX webhook_retries_by_time ON webhook_retries (webhook_id, next_at);
