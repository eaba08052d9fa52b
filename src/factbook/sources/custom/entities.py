"""Sources whose document is the entity itself, as the catalog shows it."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from factbook.sources.custom import taking
from factbook.sources.custom.definition import Definition
from factbook.sources.http import Client, Memory
from factbook.sources.integration import Collected, Integration, asking_nobody
from factbook.sources.outcomes import Missing, Outcome

_BATCH: Final = 500


def integration(definition: Definition) -> Integration:
    """What collects the source."""
    return asking_nobody(
        definition.source,
        queue="custom-entity",
        target=partial(target, definition),
        batches=partial(taking.batches, _BATCH),
        collect=collect,
    )


def target(definition: Definition, entity: Mapping[str, Any]) -> str:
    """The facts themselves: nothing else has to be known about the entity later."""
    found = taking.from_document(definition, entity)
    missing = {name: (one.outcome.value, one.detail) for name, one in found.missing.items()}
    return msgspec.json.encode((found.values, missing)).decode()


async def collect(
    targets: Sequence[str], _client: Client, _memory: Memory, _now: int
) -> dict[str, Collected]:
    """What the targets themselves say."""
    return {one: _read(one) for one in targets}


def _read(text: str) -> Collected:
    values, missing = msgspec.json.decode(text)
    reasons = {name: Missing(Outcome(word), detail) for name, (word, detail) in missing.items()}
    return Collected(values, reasons)
