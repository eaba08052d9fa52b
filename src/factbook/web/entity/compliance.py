"""The points of compliance, as people read them."""

from typing import Final, NamedTuple

import msgspec

from factbook.integrations import catalog


class Point(NamedTuple):
    """A fact of the catalog's own; what it means, and what to do where it is not true."""

    source: str
    fact: str
    title: str
    fix: str

    def is_met(self, compliance: int) -> bool:
        """Whether an entity of which the catalog keeps these bits meets it."""
        facts = msgspec.json.decode(catalog.facts(self.source, compliance), type=dict[str, bool])
        return facts[self.fact]


# In the order of the tool get-entity-compliance.
POINTS: Final = (
    Point("entity-metadata", "hasTitle", "Has a title", "Give it one in metadata.title."),
    Point(
        "entity-metadata",
        "hasDescription",
        "Has a description",
        "Say in metadata.description what it is for.",
    ),
    Point("entity-metadata", "hasTags", "Has tags", "Name at least one in metadata.tags."),
    Point("entity-metadata", "hasOwner", "Names an owner", "Name a group or a user in spec.owner."),
    Point(
        "techdocs",
        "hasTechdocsRef",
        "Has documentation",
        "Add the annotation backstage.io/techdocs-ref.",
    ),
    Point(
        "entity-ownership",
        "hasOwner",
        "Owned in the catalog",
        "Let spec.owner be a reference, such as group:default/team.",
    ),
    Point(
        "entity-ownership",
        "hasGroupOwner",
        "Owned by a group",
        "Let spec.owner name a group rather than a user.",
    ),
    Point(
        "entity-ownership",
        "hasRelationships",
        "Related to others",
        "Name its system, its APIs or what it depends on in spec.",
    ),
)
