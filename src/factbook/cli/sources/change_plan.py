"""Plan of the changes that make a server's sources match the files, and its execution."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from factbook.cli.connection import count
from factbook.cli.definition_plan import DELETION, PlanStep, StoredDocuments, change
from factbook.cli.failures import NOT_AUTHORISED, REFUSED, USAGE, CommandError
from factbook.cli.sources.files import Read
from factbook.client import Client, DataSource
from factbook.datasources.source_store import lost


@dataclass(frozen=True)
class SourceStep(PlanStep):
    """Change of one source; `breaking` describes the lost facts, by their names."""

    results = "facts and their history"
    breaking: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[tuple[str, str | None]]:
        yield from super().lines()
        for name, what in self.breaking.items():
            yield f"! {name} {what}: publishing this takes --force", "red"

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), "breaking": dict(self.breaking)}


def plan(client: Client, read: Sequence[Read], *, drafts: bool, prune: bool) -> list[SourceStep]:
    """Steps from the server to the files: definitions in file order, then deletions.

    Raises CommandError for an id of a builtin source, or a token that may not read definitions.
    """
    ids = [source.id for source in every(client)]
    there = {one.id: client.data_source(one.id) for one in read if one.id in set(ids)}
    if foreign := [one for one in read if one.id in there and not _is_defined(there[one.id])]:
        lines = [f"{one.origin}: id: {one.id} is the id of a builtin source" for one in foreign]
        raise CommandError(f"{count(lines, 'problem')}, nothing was written:", USAGE, lines)
    steps = [_step(one, there.get(one.id), drafts=drafts) for one in read]
    if prune:
        kept = {one.id for one in read}
        gone = [id_ for id_ in ids if id_ not in kept and _is_defined(client.data_source(id_))]
        steps += [SourceStep(DELETION, id_) for id_ in gone]
    return [step for step in steps if step is not None]


def every(client: Client) -> Iterator[DataSource]:
    """Every data source of the server."""
    page = client.data_sources()
    yield from page.data_sources
    while page.next_cursor:
        page = client.data_sources(cursor=page.next_cursor)
        yield from page.data_sources


def check_breaking(steps: Iterable[SourceStep]) -> None:
    """Raise CommandError when publishing would remove facts."""
    lines = [f"{s.id}: {name} {what}" for s in steps for name, what in s.breaking.items()]
    if lines:
        raise CommandError(
            "These facts would be lost to everything that reads them, so nothing was written:",
            REFUSED,
            lines,
            hint="--force publishes anyway, under a new major version.",
        )


def run(step: SourceStep, client: Client, *, drafts: bool, force: bool) -> str:
    """Execute a step, and say what was done."""
    if step.document is None:
        client.delete_data_source(step.id)
        return "deleted"
    if step.action != "publish":
        written = client.put_data_source(step.document)
        if drafts:
            return f"written as a draft{_problem(written)}"
    published = client.publish_data_source(step.id, force=force)
    return f"published, version {published.version}{_problem(published)}"


def _step(one: Read, existing: DataSource | None, *, drafts: bool) -> SourceStep | None:
    """Step for a definition; None if nothing differs."""
    document, there = one.definition.document, StoredDocuments()
    if existing is not None:
        there = _documents(existing)
    found = change(document, there, drafts=drafts)
    if found is None:
        return None
    breaking = {} if drafts or there.published is None else lost(there.published, document)
    return SourceStep(found, one.id, one.origin, dict(document), breaking)


def _documents(source: DataSource) -> StoredDocuments:
    known = source.definition
    assert known is not None, "a builtin source is refused before"
    if known.draft is None and known.published is None:
        raise CommandError(
            "This token is not shown how sources are defined.",
            NOT_AUTHORISED,
            hint="It needs the permission tech-insights.data-source.write, or a group of "
            "yours has to own the source.",
        )
    return StoredDocuments(known.draft, known.published)


def _problem(source: DataSource) -> str:
    """Note on the reason that a source cannot be collected, such as a missing connection."""
    return f"; it cannot be collected: {source.problem}" if source.problem else ""


def _is_defined(source: DataSource) -> bool:
    """True if it has a definition; builtin sources and those of plug-ins have none."""
    return source.definition is not None
