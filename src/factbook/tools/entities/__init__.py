"""Tools about the entities of the catalog: one of them whole, and those that are looked for."""
