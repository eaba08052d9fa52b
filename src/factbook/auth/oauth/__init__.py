"""OAuth 2.1 for agents: clients, consents and tokens."""
