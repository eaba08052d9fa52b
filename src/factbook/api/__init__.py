"""JSON and JSON-RPC over HTTP: one table of routes, and thin handlers."""
