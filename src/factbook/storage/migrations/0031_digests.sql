-- Where net changes of a week are sent to for an owner. The address is sealed, as that of a webhook.
CREATE TABLE digests (
    id SORTED_TEXT PRIMARY KEY,
    owner SORTED_TEXT NOT NULL,   -- with all groups below it
    form TEXT NOT NULL,           -- slack or teams
    url TEXT NOT NULL,            -- as it is shown: scheme and host alone
    address BLOB NOT NULL,        -- sealed
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    told_up_to INTEGER NOT NULL,  -- changes until then were sent, or there were none
    next_at INTEGER NOT NULL,
    failed_at INTEGER,
    error TEXT                    -- of the last failure
);
CREATE INDEX digests_by_time ON digests (next_at);
