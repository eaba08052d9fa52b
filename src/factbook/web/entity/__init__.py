"""Pages of the catalog and its entities."""
