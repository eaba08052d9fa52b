"""Importer of Kubernetes clusters: workloads as components."""
