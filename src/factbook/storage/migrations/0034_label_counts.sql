-- Rollups of scorecards by label: what an entity is counted by, as JSON of the names and values of
-- its labels in lower case, '' without any, and of what the release before wrote.
ALTER TABLE scorecard_levels ADD COLUMN labels TEXT NOT NULL DEFAULT '';

-- Entities by label and level, changed with the levels. Counts of neighbouring entities are apart
-- from those of others, so that writes of different entities seldom wait for each other.
CREATE TABLE scorecard_label_counts (
    slot INTEGER NOT NULL,
    label SORTED_TEXT NOT NULL,
    value SORTED_TEXT NOT NULL,
    level INTEGER NOT NULL,
    block INTEGER NOT NULL,       -- the id of the entities divided by 4,096
    entities INTEGER NOT NULL,
    scored INTEGER NOT NULL,      -- of them have a score
    score INTEGER NOT NULL,       -- the sum of those, in percent
    PRIMARY KEY (slot, label, value, level, block)
) WITHOUT ROWID;
