-- What a token is narrowed to: JSON of the patterns of sets, namespaces, sources and tools.
ALTER TABLE tokens ADD COLUMN narrowing TEXT;
