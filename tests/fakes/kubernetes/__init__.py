"""A fake Kubernetes API server, on the shapes that its OpenAPI documents publish."""
