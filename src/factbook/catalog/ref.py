"""Entity references, `kind:namespace/name`, canonical in lower case, and identity beyond names."""

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple, Self

import msgspec

from factbook.errors import InputError

DEFAULT_NAMESPACE = "default"

# Longer than any entity's: kind 63, namespace 63, name 253, which lower case can double. Both
# databases can index this length, which matters for unchecked targets of relations.
_LONGEST_REF = 640
# A composed character has at most four parts; composing much longer texts would be slow.
_LONGEST_DECOMPOSED = 4 * _LONGEST_REF
# Most references match this, and then take a tenth of the time.
_PLAIN_REF = re.compile(r"[a-z0-9]+:[a-z0-9-]+/[a-z0-9._-]+")
# A valid kind and namespace: see `validation`.
_OF_ENTITY = r"[a-z][a-z0-9]{0,62}:(?=[^/]{1,63}/)[a-z0-9]+(?:-+[a-z0-9]+)*/"
_POSSIBLE = re.compile(_OF_ENTITY)
_PLAIN_TARGET = re.compile(rf"{_OF_ENTITY}[a-z0-9._-]+")

# Suffix of the annotation with the external id.
EXTERNAL_ID: Final = "external-id"
# Suffix of the annotation on entities that an importer generated.
GENERATED: Final = "import-generated"


class EntityRef(NamedTuple):
    """The three parts of a reference, in lower case; `str()` gives the canonical form."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.namespace}/{self.name}"

    @classmethod
    def of(cls, kind: str, namespace: str, name: str) -> Self:
        """The reference with these parts, given in any case."""
        return cls(
            _canonicalize_part(kind), _canonicalize_part(namespace), _canonicalize_part(name)
        )


def parse_ref(
    text: str, *, kind: str | None = None, namespace: str = DEFAULT_NAMESPACE
) -> EntityRef:
    """Parse a reference, `[kind:][namespace/]name`, with defaults for missing parts.

    The parts are those of `split_ref`, trimmed like pushed names. Raises InputError for an empty or
    unprintable part, for a reference longer than any entity's can be, and for a missing kind
    without a default.
    """
    own_kind, own_namespace, name = split_ref(text)
    kind = kind if own_kind is None else own_kind
    if kind is None:
        raise InputError(f'The entity reference "{text}" lacks a kind: write kind:namespace/name.')
    namespace = namespace if own_namespace is None else own_namespace
    parts = kind.strip(), namespace.strip(), name.strip()
    if sum(map(len, parts)) > _LONGEST_DECOMPOSED:
        raise _too_long_error(text)
    ref = EntityRef.of(*parts)
    if not all(part and part.isprintable() for part in ref):
        raise _form_error(text)
    if sum(map(len, ref)) > _LONGEST_REF:
        raise _too_long_error(text)
    return ref


def canonicalize_ref(
    text: str, *, kind: str | None = None, namespace: str = DEFAULT_NAMESPACE
) -> str:
    """The canonical form of the reference that `parse_ref` returns; raises the same errors."""
    if len(text) > _LONGEST_REF:
        return str(parse_ref(text, kind=kind, namespace=namespace))
    return text if _PLAIN_REF.fullmatch(text) else _cached_ref(text, kind, namespace)


def canonicalize_target(
    text: str, *, kind: str | None = None, namespace: str = DEFAULT_NAMESPACE
) -> str:
    """The canonical form of a reference that an entity can have, such as an owner's.

    Raises InputError like `parse_ref`, and for a kind or a namespace that no entity can have: a
    code host's team, `@acme/platform`, is not a reference.
    """
    if len(text) > _LONGEST_REF:
        return _canonicalize_target(text, kind, namespace)
    return text if _PLAIN_TARGET.fullmatch(text) else _cached_target(text, kind, namespace)


def _canonicalize_target(text: str, kind: str | None, namespace: str) -> str:
    ref = str(parse_ref(text, kind=kind, namespace=namespace))
    if is_possible_ref(ref):
        return ref
    *_, name = split_ref(text)
    raise InputError(
        f'No entity can have the reference "{text[:80]}": write it like '
        f"{kind or 'component'}:{DEFAULT_NAMESPACE}/{name[:80]}."
    )


_cached_target = lru_cache(maxsize=4096)(_canonicalize_target)


def is_possible_ref(ref: str) -> bool:
    """True if an entity can have this canonical reference."""
    return _POSSIBLE.match(ref) is not None


@lru_cache(maxsize=4096)  # thousands of entities name the same owners and systems
def _cached_ref(text: str, kind: str | None, namespace: str) -> str:
    return str(parse_ref(text, kind=kind, namespace=namespace))


def split_ref(text: str) -> tuple[str | None, str | None, str]:
    """Kind, namespace and name as written in `text`; None for a missing part.

    The first `:` ends the kind unless a `/` comes before it; the first `/` after that ends the
    namespace. Raises InputError for an empty part.
    """
    kind: str | None
    kind, colon, rest = text.partition(":")
    if not colon or "/" in kind:
        kind, rest = None, text
    namespace: str | None
    namespace, slash, name = rest.partition("/")
    if not slash:
        namespace, name = None, rest
    if "" in (kind, namespace, name):
        raise _form_error(text)
    return kind, namespace, name


def _form_error(text: str) -> InputError:
    return InputError(f'The entity reference "{text}" is not of the form [kind:][namespace/]name.')


def _too_long_error(text: str) -> InputError:
    return InputError(f'The entity reference "{text[:80]}…" is longer than any entity has.')


def _canonicalize_part(part: str) -> str:
    """The part in lower case and Unicode's composed form (NFC), like stored names."""
    if part.isascii() or len(part) > _LONGEST_DECOMPOSED:  # too long for any entity
        return part.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", part).lower())


class _Annotated(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class _PreparedEntity(msgspec.Struct, frozen=True):
    metadata: _Annotated


_decode_annotated = msgspec.json.Decoder(_PreparedEntity).decode


def find_external_id(document: str) -> tuple[str, str]:
    """The annotation with a prepared entity's external id, and the id; empty if there is none."""
    if f'/{EXTERNAL_ID}":' not in document:
        return "", ""
    return _own_annotation(document, EXTERNAL_ID)


def is_generated(document: str) -> bool:
    """True for a prepared entity that an importer generated, such as from a cluster workload."""
    return f'/{GENERATED}":' in document and bool(_own_annotation(document, GENERATED)[1])


def _own_annotation(document: str, name: str) -> tuple[str, str]:
    """An annotation of the service's own domain, and its value."""
    annotations = _decode_annotated(document).metadata.annotations
    # The service writes its own three annotations last, so annotations from a user's file cannot be
    # mistaken for them; the first of the three has the service's domain.
    own = list(annotations)[-3:][0]
    key = f"{own.rpartition('/')[0]}/{name}"
    return key, annotations.get(key, "")
