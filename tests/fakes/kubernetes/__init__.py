"""A fake Kubernetes API server, on the shapes that its OpenAPI documents publish.

`tests/contracts/test_kubernetes.py` holds it against them.
"""
