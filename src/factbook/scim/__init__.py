"""SCIM 2.0: people and groups pushed by an identity provider, stored as entities of a set."""
