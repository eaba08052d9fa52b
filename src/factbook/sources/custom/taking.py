"""From what a source was answered to its facts."""

from collections.abc import Sequence
from typing import Any

from factbook.sources.custom import documents, extraction
from factbook.sources.custom.definition import Definition
from factbook.sources.custom.documents import UnreadableError
from factbook.sources.integration import Collected
from factbook.sources.outcomes import Missing, Outcome


def from_body(definition: Definition, body: bytes) -> Collected:
    """The facts in an answer's body."""
    try:
        return from_document(definition, documents.read(body, definition.format))
    except UnreadableError as error:
        return nothing(Missing(Outcome.TRANSIENT, f"the answer {error}"))


def from_document(definition: Definition, document: Any) -> Collected:
    """The facts in a document."""
    collected = Collected()
    for name, value in extraction.extract(definition.extractors, document).items():
        if isinstance(value, Missing):
            collected.missing[name] = value
        else:
            collected.values[name] = value
    return collected


def nothing(missing: Missing) -> Collected:
    """No fact, and why."""
    return Collected(missing={"": missing})


def batches(size: int, targets: Sequence[str]) -> list[list[str]]:
    """The targets, each once, in portions of this size."""
    distinct = list(dict.fromkeys(targets))
    return [distinct[i : i + size] for i in range(0, len(distinct), size)]
