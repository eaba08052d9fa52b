"""SCIM 2.0: people and groups that an identity provider pushes, kept as entities of a set."""
