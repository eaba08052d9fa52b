"""Body and answer of previews of results for entities as documents have them."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from factbook.schemas.check_results import ResultFix, SeenFact, State
from factbook.schemas.common import Count, Ref, Wire, WireAnswer, known

_TreePath = Annotated[str, Meta(min_length=1, max_length=4_096)]


class NewEntityPreview(Wire, forbid_unknown_fields=True):
    """The entities of a working tree, and its files."""

    items: Annotated[
        list[dict[str, Any]],
        Meta(min_length=1, max_length=500, description="Entities, in the form of a push."),
    ]
    paths: (
        Annotated[
            list[_TreePath],
            Meta(
                max_length=50_000,
                description="The paths of all files of their repository, for what code hosts say "
                "of these; when left out, what is stored counts.",
            ),
        ]
        | UnsetType
    ) = UNSET
    set: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=100,
                description="The set that the entities are in. Of others, and of all where it is "
                "left out, values and texts tell what the items, the paths and the catalog say, "
                "and nothing else that is stored.",
            ),
        ]
        | UnsetType
    ) = UNSET


class PreviewedEntity(WireAnswer):
    """An entity of the body, and what the push of it would be."""

    entity_ref: Ref
    change: Annotated[str, known("added", "updated", "unchanged")]


class EntityPreviewResult(WireAnswer):
    """A result that would be another one."""

    check_id: str
    title: str
    entity_ref: Ref
    now: Annotated[State | None, Meta(description="Null for an entity that is not there.")]
    then: State
    severity: Annotated[str, known("required", "advisory")]
    decided: Annotated[
        bool,
        Meta(
            description="The documents, the files and the catalog decide it, whatever else is "
            "known. Otherwise it rests on facts from elsewhere."
        ),
    ]
    new_failure: Annotated[
        bool, Meta(description="It is decided, would fail and does not fail now, and counts.")
    ]
    message: str | None = None
    fix: ResultFix | None = None
    because: list[SeenFact] | None = None


class EntityPreview(WireAnswer):
    """Results as they would be; nothing is written."""

    entities: list[PreviewedEntity]
    changed: Annotated[Count, Meta(description="Results that would be another one.")]
    new_failures: Count
    results: Annotated[
        list[EntityPreviewResult],
        Meta(description="The first 500, those of the entities of the body first."),
    ]
