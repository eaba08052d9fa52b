"""Result of a takeover: documents of files, and remarks by the item that they are about."""

from typing import Any, Final, NamedTuple

from factbook.checks.definitions import scorecard
from factbook.checks.definitions.check import parse_check
from factbook.checks.definitions.files import DefinitionDocument, Kind
from factbook.checks.takeover import made_tests
from factbook.checks.takeover.remarks import Remark, Remarks
from factbook.errors import InvalidItemsError

MOST_ITEMS: Final = 2_000


class ItemRemark(NamedTuple):
    """A remark on one item of the configuration that is taken over."""

    item: str
    remark: Remark


class TakenOver:
    """The documents that were written so far, and all remarks."""

    def __init__(self) -> None:
        self.documents: list[DefinitionDocument] = []
        self.remarks: list[ItemRemark] = []

    def add(self, kind: Kind, item: str, document: dict[str, Any], remarks: Remarks) -> None:
        """Add a document, unless a remark refuses it or this service would."""
        kept = {name: value for name, value in document.items() if value not in (None, [], {}, "")}
        if kept.get("id") in self.taken(kind):
            remarks.refuse("id", f"{kept['id']} is the id of another one")
        if not remarks.refuses:
            try:
                self.documents.append(DefinitionDocument(kind, _whole(kind, kept)))
            except InvalidItemsError as error:
                for problem in error.problem_list:
                    remarks.refuse(problem["path"], problem["message"])
        self.note(item, remarks)

    def note(self, item: str, remarks: Remarks) -> None:
        """Add the remarks on an item."""
        self.remarks += [ItemRemark(item, remark) for remark in remarks.found]

    def taken(self, kind: Kind) -> list[str]:
        """The ids of the documents of a kind."""
        return [one.document["id"] for one in self.documents if one.kind == kind]


def _whole(kind: Kind, document: dict[str, Any]) -> dict[str, Any]:
    """The document, a check with tests; raises InvalidItemsError if this service refuses it."""
    if kind == "check":
        return made_tests.with_tests(document, parse_check(document))
    scorecard.parse(document)
    return document
