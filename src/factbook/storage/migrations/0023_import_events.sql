-- Deliveries of events to importers that were seen, for a day (importers/hint_store.py).
CREATE TABLE import_deliveries (
    importer SORTED_TEXT NOT NULL,
    delivery SORTED_TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    PRIMARY KEY (importer, delivery)
) WITHOUT ROWID;
CREATE INDEX import_deliveries_by_time ON import_deliveries (received_at);

-- What importers are to read again.
CREATE TABLE import_hints (
    importer SORTED_TEXT NOT NULL,
    hint SORTED_TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    given INTEGER NOT NULL,    -- how often, since it was followed
    attempts INTEGER NOT NULL, -- that failed, since it was given
    PRIMARY KEY (importer, hint)
) WITHOUT ROWID;
CREATE INDEX import_hints_by_time ON import_hints (due_at);
