"""Parts that importers have read, and decisions on removals that they hold, over HTTP."""
