"""Who may do what: tokens, permissions, and limits on how often."""
