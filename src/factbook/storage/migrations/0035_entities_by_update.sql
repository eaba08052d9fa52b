-- Lists of what changed last: a page of what many entities meet ends before all are looked at, and
-- with the kind, that of any other is found without reading entities.
CREATE INDEX CONCURRENTLY entities_by_update ON entities (updated_at, ref, kind, id);
