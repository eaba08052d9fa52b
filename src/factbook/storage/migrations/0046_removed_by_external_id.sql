CREATE INDEX CONCURRENTLY removed_entities_by_external_id ON removed_entities (external_id);
