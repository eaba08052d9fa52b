"""OAuth 2.1 for agents: what people let clients do, and the tokens that clients get for it."""
