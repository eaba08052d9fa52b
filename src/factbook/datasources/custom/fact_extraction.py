"""Extraction of a source's facts from an answer."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, TypeVar

from factbook.datasources.custom import documents, extraction
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.custom.documents import UnreadableDocumentError
from factbook.integrations.integration import Collected
from factbook.outbound.outcomes import Missing, Outcome

T = TypeVar("T")

# As many as batches that one process works on, so that none waits for another's long extraction.
# They are nobody else's: those of the event loop look up the names of hosts.
_THREADS: Final = ThreadPoolExecutor(8, thread_name_prefix="extraction")
# Larger ones are read one after another, so that their documents are not in memory together.
_LARGE: Final = 512 * 1024
_one_large = threading.Lock()


async def in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """The result of a function, run in a thread so that others need not wait."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, partial(work, *arguments))


def from_body(definition: CustomSourceDefinition, body: bytes) -> Collected:
    """The facts in an answer's body."""
    with _one_large if len(body) > _LARGE else nullcontext():
        try:
            return from_document(definition, documents.read(body, definition.format))
        except UnreadableDocumentError as error:
            return nothing(Missing(Outcome.TRANSIENT, f"the answer {error}"))


def from_document(definition: CustomSourceDefinition, document: Any) -> Collected:
    """The facts in a document."""
    collected = Collected()
    for name, value in extraction.extract(definition.extractors, document).items():
        if isinstance(value, Missing):
            collected.missing[name] = value
        else:
            collected.values[name] = value
    return collected


def nothing(missing: Missing) -> Collected:
    """No facts, with the reason."""
    return Collected(missing={"": missing})
