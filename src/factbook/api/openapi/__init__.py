"""OpenAPI documents, made from the routes."""
