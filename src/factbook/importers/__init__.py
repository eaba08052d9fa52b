"""Importers: readings of other systems, written as sets of entities under guards."""
