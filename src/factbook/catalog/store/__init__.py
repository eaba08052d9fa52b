"""All SQL of the catalog: reading it, writing it, and the revisions of sets."""
