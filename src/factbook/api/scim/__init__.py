"""SCIM 2.0 over HTTP, as identity providers call it (RFC 7644)."""
