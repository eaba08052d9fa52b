"""Identity of imported entities beyond their names: the id that their system gives them."""

from typing import Final

import msgspec

# Ends the name of the annotation with the id.
EXTERNAL_ID: Final = "external-id"


class _Annotated(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class _PreparedEntity(msgspec.Struct, frozen=True):
    metadata: _Annotated


_of = msgspec.json.Decoder(_PreparedEntity).decode
_MARK: Final = f'/{EXTERNAL_ID}":'


def external_id(document: str) -> tuple[str, str]:
    """The annotation with the external id of a prepared entity, and the id; empty without one."""
    if _MARK not in document:
        return "", ""
    annotations = _of(document).metadata.annotations
    # The service writes its own annotations last, the one with its domain before two others, so
    # nothing that a user's file says can be taken for the id.
    own = list(annotations)[-3:][0]
    key = f"{own.rpartition('/')[0]}/{EXTERNAL_ID}"
    return key, annotations.get(key, "")
