"""Identity of imported entities beyond their names: the id that their system gives them."""

from typing import Final

import msgspec

# Ends the name of the annotation with the id.
EXTERNAL_ID: Final = "external-id"
# Ends that of the annotation of an entity that an importer generated, and nobody wrote.
GENERATED: Final = "import-generated"


class _Annotated(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class _PreparedEntity(msgspec.Struct, frozen=True):
    metadata: _Annotated


_of = msgspec.json.Decoder(_PreparedEntity).decode


def external_id(document: str) -> tuple[str, str]:
    """The annotation with the external id of a prepared entity, and the id; empty without one."""
    if f'/{EXTERNAL_ID}":' not in document:
        return "", ""
    return _own(document, EXTERNAL_ID)


def is_generated(document: str) -> bool:
    """True for a prepared entity that an importer made up, such as of a workload of a cluster."""
    return f'/{GENERATED}":' in document and bool(_own(document, GENERATED)[1])


def _own(document: str, name: str) -> tuple[str, str]:
    """An annotation of the service's own domain, and its value."""
    annotations = _of(document).metadata.annotations
    # The service writes its own annotations last, the one with its domain before two others, so
    # nothing that a user's file says can be taken for them.
    own = list(annotations)[-3:][0]
    key = f"{own.rpartition('/')[0]}/{name}"
    return key, annotations.get(key, "")
