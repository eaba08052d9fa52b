"""Templates of messages and links: `{{ metadata.name }}`, `{{ facts.github['issues.open'] }}`.

Between the braces stands a path of the entity's document, or `facts`, a source and the fact. There
are no expressions. A message shows a value that is missing as `unknown`; a link without one of its
values is none.
"""

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from factbook.catalog import url
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.fact_reference import ENTITY, FactReference
from factbook.errors import InputError
from factbook.facts.shape import UNKNOWN

LONGEST: Final = 5_000
_LONGEST_VALUE: Final = 1_000
_MOST_PLACES: Final = 50
_SCHEMES: Final = ("https:", "http:", "mailto:")
_PLACE: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_STEP: Final = re.compile(
    r"""\.?(?:(?P<name>[A-Za-z_][\w-]*)|\[(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)")\])""",
    re.ASCII,
)
# Browsers take a backslash for a slash; characters that are not seen, or turn the direction of
# text, show another address than they lead to.
_MISLEADING: Final = re.compile(
    r"[\x00-\x20\x7f-\xa0\\\xad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb\U000e0000-\U000e007f]"
)

Keys = tuple[str, ...]


class MessageTemplate(Struct, frozen=True):
    """Text with places; `parts` has texts, and the keys of what stands at a place."""

    parts: tuple[str | Keys, ...]

    def facts(self) -> list[FactReference]:
        """The facts that the template shows."""
        return [FactReference(keys[1], keys[2]) for keys in self._places() if keys[0] == "facts"]

    def sources(self) -> set[str]:
        """The sources of what the template shows, of which one may be the entity itself."""
        return {keys[1] if keys[0] == "facts" else ENTITY for keys in self._places()}

    def text(self, entity: CheckedEntity) -> str:
        """The text for an entity."""
        return self._filled(lambda keys: _text(_value(keys, entity)) or UNKNOWN)

    def link(self, entity: CheckedEntity) -> str | None:
        """The address for an entity; None if it lacks a value, or is none for a browser."""
        first = self.parts[0]
        # In an address with a host, a value with @ would name another one.
        is_mail = isinstance(first, str) and first.lower().startswith("mailto:")
        safe = "@" if is_mail else "/"

        def fill(keys: Keys) -> str:
            text = _text(_value(keys, entity))
            if not text:
                raise LookupError
            return text if keys is first else quote(text, safe=safe)

        try:
            found = self._filled(fill)
        except LookupError:
            return None
        is_link = found.lower().startswith(_SCHEMES) and not _MISLEADING.search(found)
        return found if is_link and url.is_absolute(found) else None

    def _places(self) -> list[Keys]:
        return [part for part in self.parts if isinstance(part, tuple)]

    def _filled(self, fill: Callable[[Keys], str]) -> str:
        return "".join(part if isinstance(part, str) else fill(part) for part in self.parts)


def parse(text: str) -> MessageTemplate:
    """The template in a text; raises InputError with the mistake."""
    if len(text) > LONGEST:
        raise InputError(f"is longer than {LONGEST} characters")
    pieces = _PLACE.split(text)
    if len(pieces) > 2 * _MOST_PLACES:
        raise InputError(f"can have {_MOST_PLACES} values at most")
    if any("{{" in plain or "}}" in plain for plain in pieces[::2]):
        raise InputError("has {{ without }}, or the other way round")
    parts = [_keys(piece.strip()) if i % 2 else piece for i, piece in enumerate(pieces)]
    return MessageTemplate(tuple(part for part in parts if part))


def parse_link(text: str) -> MessageTemplate:
    """The template of an address; raises InputError with the mistake."""
    template = parse(text)
    start = template.parts[0] if template.parts else ""
    if isinstance(start, str) and not start.lower().startswith(_SCHEMES):
        raise InputError("has to begin with https://, http:// or mailto:, or with a value")
    if isinstance(start, str) and len(template.parts) == 1 and not url.is_absolute(start):
        raise InputError("is not an address")
    if any(isinstance(part, str) and _MISLEADING.search(part) for part in template.parts):
        raise InputError("has a space, a backslash or a character that is not seen")
    return template


def _keys(text: str) -> Keys:
    keys, position = list[str](), 0
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None:
            break
        keys.append(found["name"] or found["single"] or found["double"] or "")
        position = found.end()
    if position < len(text) or not keys or not all(keys):
        example = "metadata.name or facts.github['issues.open']"
        raise InputError(f"has {{{{ {text[:80]} }}}}, which is no path such as {example}")
    if keys[0] == "facts" and len(keys) != 3:
        raise InputError("has to name facts as facts.SOURCE['FACT']")
    return tuple(keys)


def _value(keys: Keys, entity: CheckedEntity) -> Any:
    if keys[0] == "facts":
        return entity.values.get(keys[1], {}).get(keys[2])
    value: Any = entity.document
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str:
    """A value as people read it; what is no scalar nor list of them has no text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)[:_LONGEST_VALUE]
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value[:_LONGEST_VALUE])[:_LONGEST_VALUE]
    return ""
