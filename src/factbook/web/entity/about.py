"""Description of an entity: its head, its spec, its annotations, and its compliance."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog.kinds import RELATIONS
from factbook.catalog.store.by_ref import EntityDetail
from factbook.integrations import catalog
from factbook.web.site import fact_display, formats

_ITEMS = 20  # of a list of the spec
_ENTRIES = 200  # annotations, labels, links and tags
_LONG = 240  # characters of a text that is shown whole
_LONGEST = 20_000  # of all that a field shows

_HEAD = frozenset({"type", "lifecycle", "owner"})  # what the page's head says
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w.-]+", re.ASCII)


class Point(NamedTuple):
    """A fact of the catalog's own, with its meaning, and the fix where it is not true."""

    source: str
    fact: str
    title: str
    fix: str

    def is_met(self, compliance: int) -> bool:
        """True if an entity with these compliance bits meets it."""
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
        "Owner is a reference",
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
# Beside them of one entity: of all it would have to be looked for.
OWNER_EXISTS: Final = Point(
    "entity-ownership",
    "ownerExists",
    "Owner is in the catalog",
    "Push the owner, or name one that is there in spec.owner.",
)


def points_of(kind: str | None, points: Sequence[Point] = POINTS) -> list[Point]:
    """The points for entities of a kind, None for any; groups and users have no owner."""
    is_owned = kind is None or any(one.type == "ownedBy" for one in RELATIONS.get(kind, ()))
    return [point for point in points if is_owned or "wner" not in point.fact]


class EntityLink(NamedTuple):
    """A link of the entity; `href` is None for an address that is no web page."""

    title: str
    url: str
    href: str | None


class Part(NamedTuple):
    """A value of the spec: its text, its link, and flags for folded and cut."""

    text: str
    href: str | None = None
    folded: bool = False
    cut: bool = False


class SpecField(NamedTuple):
    """A field of the spec, its values, and the number of further ones."""

    label: str
    parts: list[Part]
    left: int

    @property
    def is_long(self) -> bool:
        """True if it needs a line of its own."""
        return any(part.folded for part in self.parts)


class CompliancePoint(NamedTuple):
    """A point of the catalog's own compliance; `fix` is the advice where it is not met."""

    title: str
    met: bool
    fix: str
    path: str


class About(NamedTuple):
    """Description of an entity."""

    description: str
    tags: list[str]
    links: list[EntityLink]
    labels: list[tuple[str, str]]
    annotations: list[tuple[str, str, str | None]]
    fields: list[SpecField]
    long_fields: list[SpecField]
    points: list[CompliancePoint]
    problems: list[str]

    @property
    def met(self) -> int:
        """Number of compliance points met."""
        return sum(check.met is True for check in self.points)


def spec_of(entity: Mapping[str, Any]) -> Mapping[str, Any]:
    """The spec; of a person or a group with the members of the profile among its own."""
    spec: Mapping[str, Any] = entity.get("spec") or {}
    profile = spec.get("profile")
    if entity["kind"].lower() not in {"user", "group"} or not isinstance(profile, dict):
        return spec
    return {**profile, **{name: value for name, value in spec.items() if name != "profile"}}


def email_of(entity: Mapping[str, Any]) -> str:
    """The email address in the profile of a person or a group; "" without one to write to."""
    found = spec_of(entity).get("email")
    if entity["kind"].lower() not in {"user", "group"} or not isinstance(found, str):
        return ""
    return found if len(found) <= _LONG and _EMAIL.fullmatch(found) else ""


def about(shown: EntityDetail, entity: Mapping[str, Any], told: Collection[str]) -> About:
    """Describe an entity, given as the catalog shows it, without the addresses told already."""
    metadata: Mapping[str, Any] = entity["metadata"]
    spec, email = spec_of(entity), email_of(entity)
    ref = shown.stored.ref
    kind, namespace = ref.partition(":")[0], ref.partition(":")[2].partition("/")[0]
    fields = [
        _field(kind, namespace, name, spec[name])
        for name in spec
        if not _is_in_head(name, spec[name]) and not (email and name == "email")
    ]
    return About(
        description=metadata.get("description") or "",
        tags=list(metadata.get("tags") or ())[:_ENTRIES],
        links=[link for link in _links(metadata) if link.href not in told],
        labels=list((metadata.get("labels") or {}).items())[:_ENTRIES],
        annotations=[
            (name, text, formats.external(text))
            for name, text in list((metadata.get("annotations") or {}).items())[:_ENTRIES]
        ],
        fields=[field for field in fields if not field.is_long],
        long_fields=[field for field in fields if field.is_long],
        points=_points(shown, kind),
        problems=[item["message"] for item in (entity.get("status") or {}).get("items", ())],
    )


def _is_in_head(name: str, value: Any) -> bool:
    return name in _HEAD and isinstance(value, str)


def _links(metadata: Mapping[str, Any]) -> list[EntityLink]:
    return [
        EntityLink(link.get("title") or link["url"], link["url"], formats.external(link["url"]))
        for link in list(metadata.get("links") or ())[:_ENTRIES]
    ]


def _field(kind: str, namespace: str, name: str, value: Any) -> SpecField:
    values = value if isinstance(value, list) else [value]
    target = next((field for field in RELATIONS.get(kind, ()) if field.name == name), None)
    parts, room = list[Part](), _LONGEST
    for one in values[:_ITEMS]:
        href = None
        if target is not None and isinstance(one, str):
            ref = formats.reference(one, target.target_kind, namespace)
            href = ref and formats.entity_path(ref)
        parts.append(_part(one, href, room))
        room = max(0, room - len(parts[-1].text))
    return SpecField(fact_display.label(name), parts, max(0, len(values) - _ITEMS))


def _part(value: Any, href: str | None, room: int) -> Part:
    if isinstance(value, bool) or value is None:
        return Part({True: "yes", False: "no", None: "none"}[value])
    if isinstance(value, int | float):
        return Part(formats.number(value))
    text = value if isinstance(value, str) else formats.json_text(value)
    folded = not isinstance(value, str) or len(text) > _LONG or "\n" in text.strip()
    return Part(text[:room], href or formats.external(text), folded=folded, cut=len(text) > room)


def _points(shown: EntityDetail, kind: str) -> list[CompliancePoint]:
    path = formats.entity_path(shown.stored.ref)
    return [
        CompliancePoint(
            point.title,
            point.is_met(shown.compliance),
            point.fix,
            f"{path}/facts/{point.source}/{point.fact}",
        )
        for point in points_of(kind, (*POINTS, OWNER_EXISTS))
    ]
