"""Checks, scorecards and exemptions as files: what kind a document is of, and its members.

    check: has-runbook
    title: There is a runbook
    rule: {source: entity, fact: metadata.annotations.runbook, operator: isKnown}

A file names the kind where a document of the service has the member `id`.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from factbook.errors import InputError

Kind = Literal["check", "scorecard", "exemption"]

KINDS: Final[tuple[Kind, ...]] = ("check", "scorecard", "exemption")


class DefinitionDocument(NamedTuple):
    """A document of a file as the service takes it, and its kind."""

    kind: Kind
    document: dict[str, Any]


def parse(document: Mapping[str, Any]) -> DefinitionDocument:
    """The kind of a document of a file; raises InputError if it is of none, or of several."""
    kinds = [kind for kind in KINDS if kind in document]
    if len(kinds) != 1:
        names = ", ".join(f"`{kind}:`" for kind in KINDS)
        raise InputError(f"is nothing to read: it has to have one of {names}")
    [kind] = kinds
    rest = {name: value for name, value in document.items() if name != kind}
    if kind != "exemption":
        if "id" in rest:
            raise InputError(f"has `id` beside `{kind}:`, which is the id")
        return DefinitionDocument(kind, {"id": document[kind], **rest})
    if rest or not isinstance(document[kind], dict):
        raise InputError("has to have nothing but `exemption:`, with all members below it")
    return DefinitionDocument(kind, dict(document[kind]))


def of_document(kind: Kind, document: Mapping[str, Any]) -> dict[str, Any]:
    """A document of the service as a file has it."""
    if kind == "exemption":
        return {kind: dict(document)}
    return {
        kind: document["id"],
        **{name: value for name, value in document.items() if name != "id"},
    }
