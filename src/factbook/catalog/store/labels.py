"""Values of a label, as a part of statements of other rooms."""

from factbook.catalog.store.conditions import SQL

_VALUES = """
SELECT s.entity_id, s.value FROM search_keys k JOIN search s ON s.key_id = k.id WHERE k.key = ?
"""


def values(label: str) -> SQL:
    """The id of each entity with the label, and its value, both in lower case."""
    return _VALUES, [f"metadata.labels.{label}".lower()]
