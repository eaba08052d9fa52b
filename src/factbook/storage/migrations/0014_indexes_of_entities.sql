-- Early databases have other forms of these, from 0001 and 0002 as they first were. Those that are
-- as they should be are left alone.
CREATE INDEX CONCURRENTLY entities_by_kind ON entities (kind, ref, id);
CREATE INDEX CONCURRENTLY entities_by_kind_and_name ON entities (kind, name, ref, id);
CREATE INDEX CONCURRENTLY entities_by_name ON entities (name, ref, id);
CREATE INDEX CONCURRENTLY entities_compliance ON entities (ref, compliance, updated_at, id);
