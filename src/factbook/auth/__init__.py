"""Authentication and authorization: tokens, permissions and rate limits."""
