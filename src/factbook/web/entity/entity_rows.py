"""Rows of the catalog, from the documents of its entities."""

from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog.store.browse import EntityRow
from factbook.clock import iso
from factbook.web.site import formats

EXPORTED: Final = (
    *("entityRef", "kind", "title", "type", "lifecycle", "owner", "system", "tags", "updatedAt"),
)
_TAGS: Final = 4  # of an entity in the list


class EntityListRow(NamedTuple):
    """An entity in the list."""

    ref: str
    kind: str
    title: str
    name: str | None  # beside a title that is different
    type: str
    owner: str
    owner_ref: str | None
    tags: list[str]
    more_tags: int
    description: str
    updated_at: int


class _RowMetadata(msgspec.Struct):
    name: str = ""
    title: str = ""
    description: str = ""
    tags: list[str] = []


class _Spec(msgspec.Struct):
    type: Any = None
    lifecycle: Any = None
    system: Any = None
    owner: Any = None
    profile: Any = None

    @property
    def display_name(self) -> str:
        """The display name of a person or group."""
        found = self.profile.get("displayName") if isinstance(self.profile, dict) else None
        return found if isinstance(found, str) else ""


class _RowDocument(msgspec.Struct):
    metadata: _RowMetadata
    spec: _Spec = msgspec.field(default_factory=_Spec)

    @property
    def title(self) -> str:
        """The title, the display name, or else the name."""
        return self.metadata.title or self.spec.display_name or self.metadata.name


_read = msgspec.json.Decoder(_RowDocument).decode


def row(listed: EntityRow) -> EntityListRow:
    """Row of an entity."""
    metadata, spec = (document := _read(listed.document)).metadata, document.spec
    kind, _, rest = listed.ref.partition(":")
    owner = spec.owner if isinstance(spec.owner, str) else ""
    owner_ref = formats.reference(owner, "group", rest.partition("/")[0])
    return EntityListRow(
        listed.ref,
        kind,
        document.title,
        metadata.name if document.title != metadata.name else None,
        spec.type if isinstance(spec.type, str) else "",
        formats.short_owner(owner_ref) if owner_ref else owner,
        owner_ref,
        metadata.tags[:_TAGS],
        max(0, len(metadata.tags) - _TAGS),
        _one_line(metadata.description),
        listed.updated_at,
    )


def exported(listed: EntityRow) -> tuple[object, ...]:
    """Cells of an entity in a file, by `EXPORTED`."""
    metadata, spec = (document := _read(listed.document)).metadata, document.spec
    plain = (spec.type, spec.lifecycle, spec.owner, spec.system)
    texts = (text if isinstance(text, str) else "" for text in plain)
    changed = iso(listed.updated_at)
    kind = listed.ref.partition(":")[0]
    return (
        listed.ref,
        kind,
        document.title,
        *texts,
        " ".join(metadata.tags),
        changed,
    )


def _one_line(text: str, longest: int = 200) -> str:
    """Start of a text, without line breaks."""
    line = " ".join(text[: 4 * longest].split())
    return line if len(line) <= longest else f"{line[:longest].rstrip()}…"
