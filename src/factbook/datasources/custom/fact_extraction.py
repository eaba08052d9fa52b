"""Collection of a source's facts: a reply for each target, and the facts in it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from factbook.datasources.custom import documents, extraction
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.custom.documents import UnreadableDocumentError
from factbook.integrations.integration import Collected
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Missing, Outcome

T = TypeVar("T")

# As many as batches that one process works on, so that none waits for another's long extraction.
# They are nobody else's: those of the event loop look up the names of hosts.
_THREADS: Final = ThreadPoolExecutor(8, thread_name_prefix="extraction")
# Larger ones are read one after another, so that their documents are not in memory together.
_LARGE: Final = 512 * 1024
_ERRORS: Final = Missing(Outcome.INCOMPLETE, "the answer has errors instead of the value")
_one_large = threading.Lock()


class SourceReply(NamedTuple):
    """Reply to a source for one target: a body as it came, or a document that was made here.

    `request` is the request as a trial shows it, and `missing` the reason that there is nothing to
    read. `status` and `content_type` are those of HTTP.
    """

    request: dict[str, Any] | None = None
    body: bytes | None = None
    document: Any = None
    missing: Missing | None = None
    status: int | None = None
    content_type: str | None = None


# Makes the client of a source on its first use: files and entities need none.
ClientMaker = Callable[[], HttpClient]
Reader = Callable[[str, ClientMaker], Awaitable[SourceReply]]


async def collect(
    definition: CustomSourceDefinition,
    read: Reader,
    targets: Sequence[str],
    client: HttpClient,
    _memory: Memory,
    _now: int,
) -> dict[str, Collected]:
    """The facts of each target, one after another."""
    return {
        target: await facts_in(definition, await read(target, lambda: client)) for target in targets
    }


async def facts_in(definition: CustomSourceDefinition, reply: SourceReply) -> Collected:
    """The facts in a reply, extracted in a thread."""
    if reply.missing is not None:
        return Collected(missing={"": reply.missing})
    if reply.body is not None:
        return await in_thread(from_body, definition, reply.body)
    return await in_thread(from_document, definition, reply.document)


async def in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """The result of a function, run in a thread so that others need not wait."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, partial(work, *arguments))


def from_body(definition: CustomSourceDefinition, body: bytes) -> Collected:
    """The facts in an answer's body."""
    with _one_large if len(body) > _LARGE else nullcontext():
        try:
            return from_document(definition, documents.read(body, definition.format))
        except UnreadableDocumentError as error:
            missing = Missing(Outcome.TRANSIENT, f"the answer {error}")
            return Collected(missing={"": missing})


def from_document(definition: CustomSourceDefinition, document: Any) -> Collected:
    """The facts in a document."""
    collected = Collected()
    # Of GraphQL, and of others that answer every request with 200.
    is_error = (
        definition.type == "http"
        and isinstance(document, dict)
        and bool(document.get("errors") or document.get("error"))
    )
    if is_error and "data" in document and document["data"] is None:
        return Collected(missing={"": _ERRORS})
    for name, value in extraction.extract(definition.extractors, document).items():
        if is_error and value is extraction.NOTHING:
            collected.missing[name] = _ERRORS
        elif isinstance(value, Missing):
            is_own = value.outcome is Outcome.BAD_DEFINITION
            where = f"schema.{name}.extract: " if is_own else ""
            collected.missing[name] = value._replace(detail=f"{where}{value.detail}")
        else:
            collected.values[name] = value
    return collected
