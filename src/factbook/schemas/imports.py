"""Answers of the interface of importers."""

from typing import Annotated

from msgspec import Meta

from factbook.schemas.common import Count, Time, WireAnswer, known


class ImportProblem(WireAnswer):
    """Something that was not imported, with its place."""

    origin: Annotated[str, Meta(description="What was read, such as a repository.")]
    message: str
    file: Annotated[str | None, Meta(description="The path of a file in it.")]
    line: Annotated[int | None, Meta(description="The line in that file.")]


class ImportPartSummary(WireAnswer):
    """A part that an importer reads, after its last reading."""

    importer: str
    part: str
    set: Annotated[str, Meta(description="The set that its entities are in.")]
    state: Annotated[
        str,
        known("complete", "partial", "held"),
        Meta(description="`held`: removals wait for a decision."),
    ]
    read_at: Time
    complete_at: Annotated[Time | None, Meta(description="Of the last complete reading.")]
    entities: Count
    problem_count: Count
    held_count: Annotated[Count, Meta(description="Removals that wait for a decision.")]


class ImportPart(ImportPartSummary):
    """A part with its problems, of which a thousand are kept, and what it holds."""

    problems: list[ImportProblem]
    held: Annotated[list[str], Meta(description="References of entities that were not found.")]
    reason: Annotated[str | None, Meta(description="Why their removal waits.")]


class ImportParts(WireAnswer):
    """Every part of every importer."""

    parts: list[ImportPartSummary]
