"""Data sources over HTTP: the builtin ones to read, those of users to define, publish and run."""

from collections.abc import Callable
from typing import Any

import structlog

from factbook.api import known_sources
from factbook.api.parameters import SOURCE_CURSOR, SOURCE_ID, SOURCE_LIMIT
from factbook.api.wire_sources import NewRun, Publish
from factbook.auth.permissions import SOURCE_WRITE
from factbook.catalog import ref as refs
from factbook.catalog.store import subjects
from factbook.catalog.validation import deeper_than, too_deep
from factbook.clock import iso
from factbook.collecting import Known, starting
from factbook.edge.requests import Reply, Request, decode, offloaded, reply
from factbook.edge.state import State
from factbook.errors import ConflictError, InputError, InvalidItemsError, NotFoundError
from factbook.facts import definitions, history
from factbook.facts.datasource import DataSource
from factbook.facts.definitions import Stored
from factbook.scheduling import runs
from factbook.scheduling.runs import Run
from factbook.sources import VENDORS
from factbook.sources.custom import definition
from factbook.storage import Transaction

log = structlog.get_logger("factbook.data_sources")

_LARGEST = 256 * 1024
_SMALL = 16 * 1024
_PAGE = 100
_MOST_RUNS = 2 * runs.KEPT
_MOST_VERSIONS = 50

Document = dict[str, Any]


async def list_all(request: Request, state: State) -> Reply:
    """Every data source: the builtin ones, then those that users defined, by their ids."""
    known = await known_sources.known(state)
    found = list(known.sources.values())
    cursor, limit = SOURCE_CURSOR.of(request), SOURCE_LIMIT.of(request) or _PAGE
    begin = 0 if cursor is None else _place(found, cursor, state)
    page = found[begin : begin + limit]
    body: dict[str, Any] = {
        "dataSources": [_shown(source, known.problems.get(source.id)) for source in page],
        "totalCount": len(found),
    }
    if begin + limit < len(found):
        body["nextCursor"] = page[-1].id
    return reply(body)


async def create(request: Request, state: State) -> Reply:
    """Define a data source; it is a draft until it is published."""
    document = await _document(request, state)
    actor, now = request.actor, state.clock()

    def work(transaction: Transaction) -> Stored:
        return definitions.create(transaction, document, actor, now)

    stored = await _write(request, state, "created", document["id"], work)
    return await _one(request, state, stored, 201)


async def get(request: Request, state: State) -> Reply:
    """A data source; of a custom one how it is defined, to tokens that may write it."""
    source_id = SOURCE_ID.of(request)
    if source_id in state.sources:
        return reply(_shown(state.sources[source_id]))
    return await _one(request, state, await existing(state, source_id))


async def replace(request: Request, state: State) -> Reply:
    """Make the body the draft of a data source, which is made when there is none.

    What says the same as what is there changes nothing.
    """
    source_id = SOURCE_ID.of(request)
    document = await _document(request, state, source_id)
    actor, now = request.actor, state.clock()

    def work(transaction: Transaction) -> Stored:
        if definitions.read(transaction, source_id) is None:
            return definitions.create(transaction, document, actor, now)
        return definitions.replace(transaction, document, actor, now)

    stored = await _write(request, state, "replaced", source_id, work)
    return await _one(request, state, stored)


async def delete(request: Request, state: State) -> Reply:
    """Remove a data source with its facts, their history and its runs."""
    source_id = SOURCE_ID.of(request)
    _check_custom(source_id, state)
    await existing(state, source_id)
    # What is large goes in portions, and first: what is left of it can be deleted again.
    await history.drop(state.database, source_id)
    if not await state.database.write(lambda tx: definitions.delete(tx, source_id)):
        raise known_sources.missing(source_id)
    state.registry.forget()
    log.info("data_source.deleted", source=source_id, actor=request.actor)
    return Reply(status=204)


async def publish(request: Request, state: State) -> Reply:
    """Publish the draft of a data source under its next semantic version.

    A fact that is removed or gets another type is refused with 409, unless forced.
    """
    source_id = SOURCE_ID.of(request)
    wanted: Publish = decode(await request.body(_SMALL, "a publication") or b"{}", Publish)
    _check_custom(source_id, state)
    await existing(state, source_id)
    actor, now, force = request.actor, state.clock(), wanted.force

    def work(transaction: Transaction) -> Stored:
        return definitions.publish(transaction, source_id, actor, now, force=force)

    stored = await _write(request, state, "published", source_id, work)
    return await _one(request, state, stored)


async def run(request: Request, state: State) -> Reply:
    """Begin to collect a data source now, of every entity or of one."""
    source_id = SOURCE_ID.of(request)
    wanted: NewRun = decode(await request.body(_SMALL, "a run") or b"{}", NewRun)
    known = await known_sources.known(state)
    if source_id not in known.sources:
        raise known_sources.missing(source_id)
    ref = None if wanted.entity is None else str(refs.parse(wanted.entity))
    entity_id = None if ref is None else await entity_id_of(state, ref)
    integration = known.integrations.get(source_id)
    if integration is None:
        raise ConflictError(_why_not_run(source_id, known))
    try:
        begun = await starting.begin(state.database, integration, entity_id, state.clock())
    except starting.NothingToCollectError:
        raise ConflictError(f"The entityFilter of {source_id} leaves {ref} out.") from None
    found = begun and await runs.run(state.database, begun.run_id)
    if found is None:
        raise ConflictError(f"A run of everything of {source_id} is under way already.")
    log.info("data_source.run", source=source_id, run=found.id, actor=request.actor)
    return reply(_run(found), 202)


async def list_runs(request: Request, state: State) -> Reply:
    """The last runs of a data source, newest first, with their figures and errors."""
    source = await known_sources.one(state, SOURCE_ID.of(request))
    found = await runs.recent(state.database, source.id, _MOST_RUNS)
    return reply({"runs": [_run(each) for each in found]})


async def entity_id_of(state: State, ref: str) -> int:
    """The id of the entity with this reference; raises NotFoundError."""
    found = await subjects.id_of(state.database, ref)
    if found is None:
        raise NotFoundError(f"There is no entity {ref}.")
    return found


async def existing(state: State, source_id: str) -> Stored:
    """The custom source with this id; raises NotFoundError."""
    stored = await definitions.one(state.database, source_id)
    if stored is None:
        raise known_sources.missing(source_id)
    return stored


async def _document(request: Request, state: State, source_id: str | None = None) -> Document:
    """The document in the body; raises InvalidItemsError with all that is wrong with it."""
    body = await request.body(_LARGEST, "a data source")
    return await checked(decode(body, Document), state, source_id)


async def checked(document: Document, state: State, source_id: str | None = None) -> Document:
    """The document; raises InvalidItemsError with all that is wrong with it, ConflictError for ids.

    With `source_id` it has to be of that source.
    """
    if deeper_than(document, state.settings.max_json_depth):
        raise InputError(f"{too_deep(state.settings.max_json_depth)}.")
    problems = definitions.service_set(document)
    if source_id is not None and document.get("id") != source_id:
        problems.append({"path": "id", "message": f"has to be {source_id}, as in the address"})
    try:
        # A definition with many expressions takes some time to read.
        await offloaded(definition.parse, document)
    except InvalidItemsError as error:
        problems += error.details["problems"]
    if problems:
        raise InvalidItemsError(problems)
    _check_custom(document["id"], state)
    return document


def _check_custom(source_id: str, state: State) -> None:
    if source_id in state.sources:
        raise ConflictError(f"{source_id} is a builtin data source, which nobody can change.")
    if source_id in VENDORS:
        raise ConflictError(f"{source_id} is the id of a builtin data source; choose another one.")


async def _write(
    request: Request,
    state: State,
    event: str,
    source_id: str,
    work: Callable[[Transaction], Stored],
) -> Stored:
    stored = await state.database.write(work)
    state.registry.forget()
    about = {"source": source_id, "version": stored.version, "actor": request.actor}
    log.info(f"data_source.{event}", **about)
    return stored


async def _one(request: Request, state: State, stored: Stored, status: int = 200) -> Reply:
    versions = await definitions.versions(state.database, stored.id)
    about: dict[str, Any] = {
        "pending": stored.draft is not None,
        "createdBy": stored.created_by,
        "updatedBy": stored.updated_by,
        "versions": [
            {
                "version": each.version,
                "publishedAt": iso(each.published_at),
                "publishedBy": each.published_by,
            }
            for each in versions[:_MOST_VERSIONS]
        ],
    }
    assert request.token is not None
    if SOURCE_WRITE in request.token.permissions:
        about |= {"draft": stored.draft, "published": stored.published}
    problem = await offloaded(state.registry.problem, stored)
    shown = _shown(definitions.shown(stored), problem)
    return reply({**shown, "definition": about}, status)


def _shown(source: DataSource, problem: str | None = None) -> dict[str, Any]:
    kind = source.handler.type if source.handler else ""
    origin = "builtin" if kind == "builtin" else "custom"
    return {**source.render(), "origin": origin, **({"problem": problem} if problem else {})}


def _place(found: list[DataSource], cursor: str, state: State) -> int:
    """Where the page after the source with this id begins, though it may be gone."""
    ids = [source.id for source in found]
    if cursor in ids:
        return ids.index(cursor) + 1
    return sum(id_ in state.sources or id_ < cursor for id_ in ids)


def _why_not_run(source_id: str, known: Known) -> str:
    if source_id in known.problems:
        return f"{source_id} cannot be collected: {known.problems[source_id]}"
    if source_id in known.definitions:
        return f"{source_id} is not collected: its facts are pushed."
    return f"{source_id} is read from the catalog whenever it is asked for."


def _run(found: Run) -> dict[str, Any]:
    return {
        "id": found.id,
        "whole": found.whole,
        "reason": found.reason,
        "state": found.state,
        "startedAt": iso(found.started_at),
        "finishedAt": None if found.finished_at is None else iso(found.finished_at),
        "entities": found.entities,
        "covered": found.covered,
        "failed": found.failed,
        "skipped": found.skipped,
        "calls": found.calls,
        "rateLimitLeft": found.rate_limit_left,
        "error": found.error,
    }
