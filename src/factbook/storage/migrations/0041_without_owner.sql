-- Entities of which no owner is derived: the bit is HAS_OWNER_RELATION of catalog/compliance.py.
-- The bits are a column of it, or SQLite would read them from the entities.
CREATE INDEX CONCURRENTLY entities_without_owner ON entities (ref, compliance, id) WHERE (compliance & 32) = 0;
