"""Collection from Datadog: its two listings, read completely once for all targets of a run.

Searches would take fewer calls for a few targets, but they use an index of their own, in which a
word also matches names and scopes; so there is only this method.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from factbook.integrations.datadog.options import normalize_tags
from factbook.integrations.integration import Collected, NumberedPages, Probe, gather_or_cancel
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Missing, Outcome

# Half of what Datadog allows: a page with long messages stays below the largest answer read.
PAGE: Final = 500
# 100,000 of a kind: beyond it there is no figure rather than a late one.
MOST_PAGES: Final = 200
_INCOMPLETE: Final = Missing(Outcome.TRANSIENT, "answered with errors")
_NO_TAGS: Final = Missing(Outcome.NO_ANNOTATION, "no annotation lists their tags")

PROBES: Final = (
    Probe(
        right="monitors_read",
        target="/api/v1/monitor",
        facts=("observability.monitorCount",),
        query={"page": 0, "page_size": 1},
        budget="monitors",
    ),
    Probe(
        right="slos_read",
        target="/api/v1/slo",
        facts=("observability.sloCount",),
        query={"limit": 1},
        budget="slos",
    ),
)

# The tags of each one listed.
Listed = Sequence[frozenset[str]]


class _Tagged(msgspec.Struct):
    id: int | str
    tags: list[str] | None = None
    monitor_tags: list[str] | None = None

    def normalized(self) -> frozenset[str]:
        return normalize_tags(self.tags, self.monitor_tags)


class _Objectives(msgspec.Struct):
    data: list[_Tagged]
    errors: list[Any] | None = None


async def collect_datadog(
    targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target, or the reason that there are none."""

    async def monitors(number: int) -> list[_Tagged] | Missing:
        query = {"page": number, "page_size": PAGE}
        answer = await client.get("/api/v1/monitor", query=query, budget="monitors")
        return answer.read_as(list[_Tagged])

    async def objectives(number: int) -> list[_Tagged] | Missing:
        query = {"limit": PAGE, "offset": number * PAGE}
        answer = await client.get("/api/v1/slo", query=query, budget="slos")
        found = answer.read_as(_Objectives)
        if isinstance(found, Missing):
            return found
        return _INCOMPLETE if found.errors else found.data

    pages = NumberedPages(memory, now, "Datadog", PAGE, MOST_PAGES, _Tagged.normalized)
    listed = await gather_or_cancel(
        pages.rows("monitors", monitors), pages.rows("slos", objectives)
    )
    return make_datadog_facts(targets, *listed)


def make_datadog_facts(
    targets: Sequence[str], monitors: Listed | Missing, objectives: Listed | Missing
) -> dict[str, Collected]:
    """The facts about each target, from the listings or with the reason for their absence."""
    tags = [target.split(" ") for target in targets]
    by_monitor = _count_tagged([of_monitors for of_monitors, _ in tags], monitors)
    by_objective = _count_tagged([of_objectives for _, of_objectives in tags], objectives)
    counts = zip(targets, by_monitor, by_objective, strict=True)
    return {
        target: Collected.of({"observability": {"monitorCount": monitors, "sloCount": objectives}})
        for target, monitors, objectives in counts
    }


def _count_tagged(wanted: Sequence[str], listed: Listed | Missing) -> Iterable[int | Missing]:
    """The number of entries that have all of the tags, for each of the wanted lists of tags.

    Uses an index by tag, so that the cost is not the product of both lists.
    """
    if isinstance(listed, Missing):
        return [listed if tags else _NO_TAGS for tags in wanted]
    having: dict[str, set[int]] = {tag: set() for tags in wanted for tag in tags.split(",")}
    for number, found in enumerate(listed):
        for tag in found & having.keys():
            having[tag].add(number)
    common = {tags: set.intersection(*map(having.__getitem__, tags.split(","))) for tags in wanted}
    return [len(common[tags]) if tags else _NO_TAGS for tags in wanted]
