"""All SQL of the catalog: reads, writes and the revisions of sets."""
