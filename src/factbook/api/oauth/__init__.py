"""OAuth for agents: metadata, tokens, registration of clients, and the bearer check of `/mcp`."""
