"""Answers of the interface of importers."""

from typing import Annotated

from msgspec import Meta

from factbook.schemas.common import Count, Time, WireAnswer, describe_known


class ImportRunSummary(WireAnswer):
    """A run of an importer that has ended."""

    id: int
    reason: Annotated[
        str,
        describe_known("cadence", "asked", "command"),
        Meta(description="`command`: from the command line of the service."),
    ]
    state: Annotated[
        str,
        describe_known("complete", "partial", "held", "failed"),
        Meta(description="`failed`: nothing could be read; everything stays as it was."),
    ]
    started_at: Time
    ended_at: Time
    calls: Count
    calls_left: Annotated[
        int | None, Meta(description="Calls that the tightest limit of the account still allowed.")
    ]
    error: Annotated[str | None, Meta(description="Why not everything was read.")]


class ShownImporter(WireAnswer):
    """An importer, its last run and its next one."""

    id: Annotated[str, Meta(description="Names its sets: `import/<id>/<part>`.")]
    kind: str
    title: str
    state: Annotated[
        str,
        describe_known(
            "new", "waiting", "running", "complete", "partial", "held", "failed", "unusable"
        ),
        Meta(
            description="`waiting` and `running` are of a run that has not ended. An importer that "
            "is `unusable` does not run; `problem` has the reason."
        ),
    ]
    complete_at: Annotated[
        Time | None, Meta(description="Of the last complete reading of every part.")
    ]
    next_run_at: Annotated[
        Time | None, Meta(description="Null if it only runs when it is asked, or runs now.")
    ]
    problem_count: Count
    held_count: Annotated[Count, Meta(description="Removals that wait for a decision.")]
    last_run: Annotated[ImportRunSummary | None, Meta(description="Null before the first.")]
    problem: Annotated[str | None, Meta(description="Why it cannot be used.")]


class ShownImporters(WireAnswer):
    """Every importer, by id."""

    importers: list[ShownImporter]


class ImportProblem(WireAnswer):
    """Something that was not imported, with its place."""

    origin: Annotated[str, Meta(description="What was read, such as a repository.")]
    message: str
    file: Annotated[str | None, Meta(description="The path of a file in it.")]
    line: Annotated[int | None, Meta(description="The line in that file.")]
    url: Annotated[str | None, Meta(description="The file's page at its host, where it is known.")]


class ImportPartSummary(WireAnswer):
    """A part that an importer reads, after its last reading."""

    importer: str
    part: str
    set: Annotated[str, Meta(description="The set that its entities are in.")]
    state: Annotated[
        str,
        describe_known("complete", "partial", "held"),
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


class ImporterMaker(WireAnswer):
    """People who made and changed an importer."""

    created_at: Time
    created_by: str
    updated_at: Time
    updated_by: str


class ImporterAnswer(ShownImporter):
    """An importer with its runs, newest first, and the parts that it reads."""

    interval_seconds: Annotated[
        int | None, Meta(description="From one run to the next; null if it only runs when asked.")
    ]
    made: Annotated[ImporterMaker | None, Meta(description="Null for an importer of the settings.")]
    runs: Annotated[list[ImportRunSummary], Meta(description="Those that have ended, at most 50.")]
    parts: Annotated[
        list[ImportPart], Meta(description="Of the last reading, each with what it holds.")
    ]
