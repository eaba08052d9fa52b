"""The name of one fact in a condition: its source, its name, and for an object a path inside."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from factbook.catalog import essentials
from factbook.datasources.custom import extraction
from factbook.datasources.custom.interpreter import depth
from factbook.errors import InputError
from factbook.facts.members import Report

# The catalog document of the entity.
ENTITY: Final = "entity"
# The states of other checks.
CHECKS: Final = "checks"

_LONGEST: Final = 300
# Few enough that the stack is never too short for them, wherever an evaluation begins.
_DEEPEST: Final = 50


class FactReference(Struct, frozen=True):
    """A fact; `path` is the JMESPath expression of the part of an object that is meant."""

    source: str
    fact: str
    path: str | None = None

    def __str__(self) -> str:
        inside = f" at {self.path}" if self.path else ""
        return f"{self.source} {self.fact}{inside}"


def read_reference(document: Mapping[str, Any], path: str, report: Report) -> FactReference:
    """Parse the members `source`, `fact` and `path`; reports every mistake with its path."""
    for name in ("source", "fact"):
        value = document.get(name)
        if name not in document:
            report(f"{path}.{name}", "is required")
        elif not isinstance(value, str) or not 0 < len(value.strip()) <= _LONGEST:
            report(f"{path}.{name}", f"has to be a string of 1 to {_LONGEST} characters")
    inside = document.get("path")
    if inside is not None:
        _check_path(inside, document.get("source"), f"{path}.path", report)
    source, fact = str(document.get("source")), str(document.get("fact"))
    # Known beside the document, and kept up to date where the catalog itself answers.
    if (source, fact) == (ENTITY, essentials.OWNER_EXISTS):
        source = "entity-ownership"
    return FactReference(source, fact, inside)


def _check_path(text: object, source: object, path: str, report: Report) -> None:
    if not isinstance(text, str) or not text.strip():
        report(path, "has to be a JMESPath expression")
    elif source in (ENTITY, CHECKS):
        report(path, f"is for facts of type object; the source `{source}` has none")
    else:
        try:
            found = extraction.expression(text)
        except InputError as error:
            report(path, error.message)
            return
        if depth(found.parsed.parsed) > _DEEPEST:
            report(path, f"is nested more than {_DEEPEST} levels deep")
