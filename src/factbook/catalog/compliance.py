"""The catalog's own facts about an entity, as bits of one integer.

The bits are computed in the transaction that writes the entity, or an entity that points to it, so
a read reflects the catalog at that moment. OWNER_EXISTS is not stored: deleting a group would
change every entity it owns, so reads look the owner up (catalog/store/by_ref.py).

A blank value counts as absent, and so does an owner that is not a string.
"""

from collections.abc import Iterable
from typing import Any

HAS_TITLE = 1
HAS_DESCRIPTION = 2
HAS_TAGS = 4
HAS_OWNER = 8  # spec.owner is a text that is not blank
HAS_TECHDOCS_REF = 16
HAS_OWNER_RELATION = 32  # an ownedBy relation is derived; its target need not exist
HAS_GROUP_OWNER = 64  # and its target is a group
HAS_RELATIONSHIPS = 128  # any relation but ownedBy, in either direction
OWNER_EXISTS = 256  # a target of an ownedBy relation is in the catalog
# An owner got another name since the entity was written, so its name may be of another group now.
OWNER_RENAMED = 512

RELATION_BITS = HAS_OWNER_RELATION | HAS_GROUP_OWNER | HAS_RELATIONSHIPS
TECHDOCS_ANNOTATION = "backstage.io/techdocs-ref"


def of_document(metadata: dict[str, Any], spec: dict[str, Any]) -> int:
    """The bits determined by the entity's own document."""
    return (
        (HAS_TITLE if _says(metadata.get("title")) else 0)
        | (HAS_DESCRIPTION if _says(metadata.get("description")) else 0)
        | (HAS_TAGS if metadata.get("tags") else 0)
        | (HAS_OWNER if _says(spec.get("owner")) else 0)
        | (
            HAS_TECHDOCS_REF
            if _says(metadata.get("annotations", {}).get(TECHDOCS_ANNOTATION))
            else 0
        )
    )


def _says(text: object) -> bool:
    """Return true if the value is a string that is not blank."""
    return isinstance(text, str) and bool(text.strip())


def of_relations(relations: Iterable[tuple[str, str]]) -> int:
    """The bits determined by an entity's relations in both directions."""
    bits = 0
    for type_, target in relations:
        if type_ == "ownedBy":
            bits |= HAS_OWNER_RELATION
            if target.startswith("group:"):
                bits |= HAS_GROUP_OWNER
        else:
            bits |= HAS_RELATIONSHIPS
    return bits


def with_relations(bits: int, relations: Iterable[tuple[str, str]]) -> int:
    """The bits updated for an entity whose relations are now these."""
    return bits & ~RELATION_BITS | of_relations(relations)
