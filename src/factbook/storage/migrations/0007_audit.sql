-- Who did what, and what was refused: rows are added, and forgotten after some time, never changed.
CREATE TABLE audit (
    at INTEGER NOT NULL,
    id SORTED_TEXT NOT NULL,
    actor SORTED_TEXT NOT NULL,    -- the user's reference, 'command line', '' for nobody known
    action SORTED_TEXT NOT NULL,   -- one of auth/audit.py
    object SORTED_TEXT NOT NULL,
    outcome SORTED_TEXT NOT NULL,  -- 'done' or 'refused'
    status INTEGER NOT NULL,       -- of the answer over HTTP, else 0
    address TEXT NOT NULL,
    token TEXT NOT NULL,           -- the id of the token, '' without one
    detail TEXT NOT NULL,
    PRIMARY KEY (at, id)
) WITHOUT ROWID;
CREATE INDEX audit_by_actor ON audit (actor, at, id);
CREATE INDEX audit_by_action ON audit (action, at, id);
CREATE INDEX audit_by_object ON audit (object, at, id);
CREATE INDEX audit_by_outcome ON audit (outcome, at, id);
