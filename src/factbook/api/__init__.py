"""HTTP in JSON and JSON-RPC: a visible table of routes, and thin handlers that read, call, render."""
