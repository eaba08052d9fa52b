"""Taking over checks of other products: their documents, rewritten as those of this one."""
