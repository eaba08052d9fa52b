"""Checks, scorecards and exemptions from files and directories, with every problem of each."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from factbook.catalog import ref
from factbook.checks import document_readers
from factbook.checks.definitions import scorecard
from factbook.checks.document_readers import Kind
from factbook.checks.exemptions import exemption
from factbook.checks.rules.check_definition import Check, parse_check
from factbook.cli import definition_files
from factbook.errors import InvalidItemsError, problem


class ReadDocument(NamedTuple):
    """A valid document, and its place.

    `check` is set for a check.
    """

    kind: Kind
    document: dict[str, Any]
    origin: str
    check: Check | None

    @property
    def id(self) -> str:
        """Id of the check or the scorecard; of an exemption what it is about."""
        if self.kind == "exemption":
            about = self.document.get("check") or self.document.get("scorecard")
            return f"{about} of {ref.parse(self.document['entity'])}"
        return str(self.document["id"])

    @property
    def key(self) -> tuple[str, str]:
        return f"{self.kind}: is", self.id


def read(places: Sequence[str]) -> list[ReadDocument]:
    """The documents in files and directories; raises the errors of `definition_files.read`."""
    return definition_files.read(places, "a check, scorecard or exemption", _parse)


def _parse(document: dict[str, Any], origin: str) -> ReadDocument:
    found = document_readers.parse_file_document(document)
    return ReadDocument(found.kind, found.document, origin, _check(found.kind, found.document))


def _check(kind: Kind, document: dict[str, Any]) -> Check | None:
    """The check of a document, if it is one; raises InvalidItemsError for any that is broken."""
    match kind:
        case "check":
            return parse_check(document)
        case "scorecard":
            scorecard.parse(document)
        case "exemption":
            # One that is over is a file that can go, and no mistake.
            if exemption.parse(document, 0).until is None:
                raise InvalidItemsError([problem("until", "is required in a file")])
    return None
