"""Unknown fields in filters: the usual reason for an empty result."""

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from factbook.cli.output import note

if TYPE_CHECKING:
    from factbook.client import Client

_ENVELOPE = (
    *("kind", "apiVersion", "metadata.name", "metadata.namespace", "metadata.title"),
    *("metadata.description", "metadata.tags", "metadata.labels", "metadata.annotations"),
)


def note_unknown(client: "Client", fields: Sequence[str]) -> None:
    """Print on stderr the fields that no entity has, with suggestions."""
    for field in dict.fromkeys(fields):
        if client.query(filters=[field], fields=["kind"], limit=1).total_items == 0:
            near = difflib.get_close_matches(field, _known(), 1, 0.7)
            meant = f" {near[0]} is meant?" if near else ""
            note(f'No entity has the field "{field}".{meant}')


def of_filters(filters: Sequence[str]) -> list[str]:
    """Fields in conditions such as `kind=component,spec.type=service`."""
    parts = [part.partition("=")[0].strip() for text in filters for part in text.split(",")]
    return [field for field in parts if field]


def _known() -> list[str]:
    from factbook.catalog import kinds, relations

    tables = (*kinds.REQUIRED.values(), *kinds.OPTIONAL.values())
    related = sorted(relations.REVERSE)
    return [
        *_ENVELOPE,
        *sorted({f"spec.{field}" for fields in tables for field in fields}),
        *(f"relations.{type_}" for type_ in related),
    ]
