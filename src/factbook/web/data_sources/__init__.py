"""Pages of data sources."""
