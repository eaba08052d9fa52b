"""Tokens and the audit log over HTTP."""
