"""From the listings to facts: how many have all tags that a target wants."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from factbook.integrations.datadog.targets import Tags, Wanted
from factbook.integrations.integration import Collected
from factbook.outbound.outcomes import Missing, Outcome

# The tags of each one listed.
Listed = Sequence[frozenset[str]]

_NO_TAGS: Final = Missing(Outcome.NO_ANNOTATION, "no annotation names their tags")


def collected(
    targets: Iterable[str], monitors: Listed | Missing, objectives: Listed | Missing
) -> dict[str, Collected]:
    """The facts about each target, from the listings or why there is none."""
    wanted = {target: Wanted.read(target) for target in targets}
    by_monitor = _counts({one.monitors for one in wanted.values()}, monitors)
    by_objective = _counts({one.objectives for one in wanted.values()}, objectives)
    return {
        target: Collected.of(
            {
                "observability": {
                    "monitorCount": by_monitor[one.monitors],
                    "sloCount": by_objective[one.objectives],
                }
            }
        )
        for target, one in wanted.items()
    }


def _counts(wanted: Iterable[Tags], listed: Listed | Missing) -> Mapping[Tags, int | Missing]:
    """How many of those listed have all of the tags, for each of the wanted lists of tags.

    By an index of tags, so that many lists of tags and many listed are not multiplied.
    """
    if isinstance(listed, Missing):
        return {tags: listed if tags else _NO_TAGS for tags in wanted}
    having: dict[str, set[int]] = {tag: set() for tags in wanted for tag in tags}
    for number, found in enumerate(listed):
        for tag in found & having.keys():
            having[tag].add(number)
    return {tags: _common([having[tag] for tag in tags]) for tags in wanted}


def _common(sets: list[set[int]]) -> int | Missing:
    """How many are in all of the sets; the smallest one is gone through."""
    return len(set.intersection(*sorted(sets, key=len))) if sets else _NO_TAGS
