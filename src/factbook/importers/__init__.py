"""Importers: read other systems and write sets of entities, with guards against mass removal."""
