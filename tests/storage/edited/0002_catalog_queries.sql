-- What stands before and behind the uid and the etag that reads show: rendering is then putting
-- columns one after another. The document is head, body and a closing brace.
ALTER TABLE entities ADD COLUMN head TEXT NOT NULL DEFAULT '';
ALTER TABLE entities ADD COLUMN body TEXT NOT NULL DEFAULT '';
UPDATE entities SET
    head = substr(document, 1, POSITION(document, '"metadata":{') + 11),
    body = substr(
        document,
        POSITION(document, '"metadata":{') + 12,
        length(document) - POSITION(document, '"metadata":{') - 12
    );
ALTER TABLE entities DROP COLUMN document;

-- Facets show values as they were written. The rows are made anew from the documents.
DROP TABLE search;
CREATE TABLE search (
    key_id INTEGER NOT NULL,
    value SORTED_TEXT NOT NULL,
    original SORTED_TEXT NOT NULL,  -- as written, when that differs from the value in lower case
    entity_id INTEGER NOT NULL,
    PRIMARY KEY (key_id, value, original, entity_id)
) WITHOUT ROWID;

-- In the order of names, as catalog pages list entities.
DROP INDEX entities_by_name;
CREATE INDEX entities_by_name ON entities (name, ref);
CREATE INDEX entities_by_kind_and_name ON entities (kind, name, ref);
