"""Reading of `catalog-info.yaml` files: documents, the targets of locations, and placeholders."""
