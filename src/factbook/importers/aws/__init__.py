"""Importer of AWS Organizations: accounts as resources."""
