"""Pages of the administration."""
