"""Templates with values of an entity: `/builds/{{ metadata.name }}`.

Between the braces stands a JMESPath expression on the entity as the catalog shows it. A value
never changes the meaning of the text around it: it is escaped for the place where it is put.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from factbook.datasources.custom import extraction
from factbook.datasources.custom.extraction import Expression
from factbook.errors import InputError
from factbook.outbound.client import has_dot_segments
from factbook.outbound.outcomes import Missing, Outcome

LONGEST: Final = 2_000
_LONGEST_VALUE: Final = 1_000
_PLACE: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")

Escape = Callable[[str], str]


class NoValueError(Exception):
    """The entity lacks a value that a template needs."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.missing = Missing(Outcome.NO_ANNOTATION, detail)


class Template(Struct, frozen=True):
    """Text with placeholders; `parts` alternates between plain texts and expressions."""

    text: str
    parts: tuple[str | Expression, ...]

    def render(self, entity: Mapping[str, Any], escape: Escape) -> str:
        """The text for an entity; raises NoValueError if the entity lacks one of its values."""
        return "".join(
            part if isinstance(part, str) else escape(_value(part, entity)) for part in self.parts
        )


def parse(text: str) -> Template:
    """The template in a text; raises InputError with the mistake."""
    if len(text) > LONGEST:
        raise InputError(f"is longer than {LONGEST} characters")
    pieces = _PLACE.split(text)
    if any("{{" in plain or "}}" in plain for plain in pieces[::2]):
        raise InputError("has {{ without }}, or the other way round")
    parts: list[str | Expression] = []
    for i, piece in enumerate(pieces):
        if i % 2:
            parts.append(extraction.expression(piece.strip()))
        elif piece:
            parts.append(piece)
    return Template(text, tuple(parts))


def in_path(value: str) -> str:
    """A value as one segment of a path; raises NoValueError for one that would climb out of it."""
    if has_dot_segments(value):
        raise NoValueError("a value that a path cannot hold")
    return quote(value, safe="")


def as_it_is(value: str) -> str:
    """A value unchanged, for JSON or a query, which is encoded later."""
    return value


def in_header(value: str) -> str:
    """A value in a header, which holds printable ASCII only."""
    if not value.isascii() or _CONTROL.search(value):
        raise NoValueError("a value that a header cannot hold")
    return value


def _value(expression: Expression, entity: Mapping[str, Any]) -> str:
    found = expression.of(entity)
    match found:
        case bool():
            return "true" if found else "false"
        case str() | int() | float() if found != "":
            text = str(found)
            if len(text) <= _LONGEST_VALUE:
                return text
            raise NoValueError(f"{expression.text} has more than {_LONGEST_VALUE} characters")
    raise NoValueError(f"the entity has no {expression.text}")
