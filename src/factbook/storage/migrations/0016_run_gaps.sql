-- Facts that a run could not bring, counted by place and reason; the place '' is everything.
CREATE TABLE run_gaps (
    run_id INTEGER NOT NULL,
    place SORTED_TEXT NOT NULL,
    reason SORTED_TEXT NOT NULL,
    kind SORTED_TEXT NOT NULL,      -- passing, final or skipped
    entities INTEGER NOT NULL,
    PRIMARY KEY (run_id, place, reason, kind)
) WITHOUT ROWID;

-- Entities of which some facts could not be asked for.
ALTER TABLE runs ADD COLUMN incomplete INTEGER NOT NULL DEFAULT 0;
