"""Entity references: `kind:namespace/name`, canonical in lower case."""

import unicodedata
from typing import NamedTuple, Self

from factbook.errors import InputError

DEFAULT_NAMESPACE = "default"

# Above what any entity has: kind 63, namespace 63, name 253, which lower case can double. Both
# databases can index it, which matters for relations to targets that nobody has checked.
_LONGEST = 640


class EntityRef(NamedTuple):
    """The three parts of a reference, in lower case; `str()` gives the canonical form."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.namespace}/{self.name}"

    @classmethod
    def of(cls, kind: str, namespace: str, name: str) -> Self:
        """The reference with these parts, in whatever case they come."""
        return cls(_canonical(kind), _canonical(namespace), _canonical(name))


def parse(text: str, *, kind: str | None = None, namespace: str = DEFAULT_NAMESPACE) -> EntityRef:
    """The reference that `text` means, `[kind:][namespace/]name`, with defaults for what it lacks.

    The first `:` ends the kind unless a `/` comes before it; the first `/` after that ends the
    namespace. Raises InputError for an empty or unprintable part, for more characters than any
    entity's reference has, or for no kind where none is the default.
    """
    head, colon, rest = text.partition(":")
    found: str | None
    if colon and "/" not in head:
        found = head
    else:
        found, rest = kind, text
    before, slash, after = rest.partition("/")
    space, name = (before, after) if slash else (namespace, rest)
    if found is None:
        raise InputError(f'The entity reference "{text}" lacks a kind: write kind:namespace/name.')
    ref = EntityRef.of(found.strip(), space.strip(), name.strip())
    if not all(part and part.isprintable() for part in ref):
        raise InputError(
            f'The entity reference "{text}" is not of the form [kind:][namespace/]name.'
        )
    if sum(map(len, ref)) > _LONGEST:
        raise InputError(f'The entity reference "{text[:80]}…" is longer than any entity has.')
    return ref


def _canonical(part: str) -> str:
    """In lower case and Unicode's composed form, which the stored names are in."""
    if part.isascii():
        return part.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", part).lower())
