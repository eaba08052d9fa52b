"""Pages of sign-in and of the first start."""
