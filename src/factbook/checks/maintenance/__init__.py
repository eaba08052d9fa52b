"""Maintenance of states and levels: in the transaction that writes, of what it touched."""
