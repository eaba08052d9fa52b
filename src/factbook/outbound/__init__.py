"""HTTP client for vendors: bounded, rate-limited and guarded calls with classified outcomes."""
