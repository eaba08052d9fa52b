"""The benchmarks of the service, and what it is compared with: `python -m bench`."""
