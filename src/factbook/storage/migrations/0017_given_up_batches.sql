-- Batches that were given up because processes that worked on them ended, of the runs of a source
-- since its last complete one.
CREATE TABLE given_up_batches (
    run_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    source_id SORTED_TEXT NOT NULL,
    work TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    given_up_at INTEGER NOT NULL,
    PRIMARY KEY (run_id, number)
) WITHOUT ROWID;
