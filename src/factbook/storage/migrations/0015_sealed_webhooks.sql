-- Where events are sent to, the address sealed. It takes the place of webhooks: in a table of its own
-- a release that looks for addresses in the clear finds nothing to send to, rather than what it
-- cannot read and would give up. Rows are moved by processes that have the key
-- (webhooks/adoption.py), also those that an older release adds later.
CREATE TABLE webhook_endpoints (
    id SORTED_TEXT PRIMARY KEY,
    url TEXT NOT NULL,            -- as it is shown: scheme and host alone, once address is there
    address BLOB,                 -- sealed; none of a row that the key does not open
    types TEXT NOT NULL,          -- JSON; an empty list is every type
    secret BLOB NOT NULL,         -- sealed
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
