"""Documents of scorecards as interfaces take them, against the checks that there are."""

from typing import Any

from factbook.catalog.validation import deeper_than, too_deep
from factbook.checks import check_store, scorecard
from factbook.checks.scorecard import Scorecard
from factbook.datasources import definitions
from factbook.errors import InputError, InvalidItemsError
from factbook.storage import Database

Document = dict[str, Any]


async def checked(
    document: Document, database: Database, max_depth: int, scorecard_id: str | None = None
) -> Scorecard:
    """The scorecard in a document; raises InvalidItemsError with every mistake and its path.

    With `scorecard_id` the document must be of that scorecard.
    """
    if deeper_than(document, max_depth):
        raise InputError(f"{too_deep(max_depth)}.")
    problems = definitions.service_set(document)
    if scorecard_id is not None and document.get("id") != scorecard_id:
        problems.append({"path": "id", "message": f"has to be {scorecard_id}, as in the address"})
    known = {one.id for one in await check_store.everything(database)}
    try:
        found = scorecard.parse(document, known)
    except InvalidItemsError as error:
        raise InvalidItemsError([*problems, *error.details["problems"]]) from None
    if problems:
        raise InvalidItemsError(problems)
    return found
