"""Sources whose document is the entity itself, as the catalog shows it."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from factbook.datasources.custom import fact_extraction as taking
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.custom.extraction import Expression
from factbook.integrations.integration import Collected, Integration, asking_nobody, portions
from factbook.outbound import HttpClient, Memory

# So few that a batch ends in its time, however long each takes.
_BATCH: Final = 50
# With these an expression sees more than the members that it names.
_WIDE: Final = re.compile(r"[@*\\]")

_IsSeen = Callable[[str], bool]


def integration(definition: CustomSourceDefinition) -> Integration:
    """What collects the source."""
    return asking_nobody(
        definition.source,
        queue=f"custom-{definition.source.id}",
        target=partial(target, _is_seen(definition)),
        batches=partial(portions, size=_BATCH),
        collect=partial(collect, definition),
    )


def target(is_seen: _IsSeen, entity: Mapping[str, Any]) -> str:
    """What the source sees of the entity: nothing else has to be known of it later.

    The facts are not taken here, where whoever plans a run would wait for it.
    """
    seen = {name: part for name, part in entity.items() if is_seen(name)}
    return msgspec.json.encode(seen).decode()


async def collect(
    definition: CustomSourceDefinition,
    targets: Sequence[str],
    _client: HttpClient,
    _memory: Memory,
    _now: int,
) -> dict[str, Collected]:
    """The facts in the targets."""

    async def one(target: str) -> Collected:
        document = msgspec.json.decode(target)
        return await taking.in_thread(taking.from_document, definition, document)

    return {target: await one(target) for target in targets}


def _is_seen(definition: CustomSourceDefinition) -> _IsSeen:
    """Which members of an entity the extractors may look at."""
    extractors = definition.extractors.values()
    texts = [one.text for one in extractors if isinstance(one, Expression)]
    if len(texts) < len(extractors) or any(map(_WIDE.search, texts)):
        return lambda _: True
    return lambda name: any(name in text for text in texts)
