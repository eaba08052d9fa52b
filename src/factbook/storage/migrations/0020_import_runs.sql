-- Runs of importers (importers/run_store.py), at most one of each under way.
CREATE TABLE import_runs (
    id INTEGER PRIMARY KEY,
    importer SORTED_TEXT NOT NULL,
    reason TEXT NOT NULL,         -- cadence, asked or command
    asked_at INTEGER NOT NULL,
    started_at INTEGER,           -- of the last attempt; none: it waits
    ended_at INTEGER,
    state TEXT NOT NULL,          -- waiting, running, complete, partial, held or failed
    holder TEXT NOT NULL,         -- process that imports; empty: none does
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,    -- runs in a row, this one included, that were not whole
    calls INTEGER NOT NULL,
    calls_left INTEGER,           -- of the scarcest limit of the account
    resumes_at INTEGER,           -- no call before, by a limit
    error TEXT NOT NULL           -- why it was not whole; empty: it was
);
INSERT INTO counters (name, value) VALUES ('import run', 0);
CREATE UNIQUE INDEX import_runs_under_way ON import_runs (importer) WHERE ended_at IS NULL;
CREATE INDEX import_runs_by_importer ON import_runs (importer, id);
