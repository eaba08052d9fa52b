"""Results of checks as readers ask for them."""
