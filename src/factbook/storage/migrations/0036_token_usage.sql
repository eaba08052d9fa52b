-- Answered calls of tools of each token by day, in days since the epoch: several processes add to a
-- row, once a minute each.
CREATE TABLE token_usage (
    token_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    size INTEGER NOT NULL,        -- of the results, in characters
    PRIMARY KEY (token_id, day)
) WITHOUT ROWID;
