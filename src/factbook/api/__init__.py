"""HTTP in JSON and JSON-RPC: a visible table of routes, handlers that read, call and render."""
