"""Which tags an entity's annotations say that its monitors and objectives have.

A target is the text of both lists, `service:app service:app`, which is the same for all entities
that want the same. Tags are compared as Datadog writes them.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from factbook.integrations.datadog.options import Options
from factbook.integrations.locations import annotations
from factbook.outbound.outcomes import Missing, Outcome

SERVICE_NAME: Final = "datadoghq.com/service-name"
MONITOR_TAGS: Final = "datadoghq.com/monitor_tags"
SLO_TAG: Final = "datadoghq.com/slo_tag"
SITE: Final = "datadoghq.com/site"
MOST_TAGS: Final = 20
MOST_CHARACTERS: Final = 200

_REPLACED: Final = re.compile(r"[^\w:./-]")

Tags = tuple[str, ...]


class Wanted(NamedTuple):
    """The tags that a monitor, and those that an objective, has to have to count; sorted.

    No tags at all: the annotations say nothing of that kind.
    """

    monitors: Tags
    objectives: Tags

    @property
    def text(self) -> str:
        """The target; a tag holds neither a comma nor a blank."""
        return " ".join(",".join(tags) for tags in self)

    @classmethod
    def read(cls, text: str) -> "Wanted":
        """What a target says."""
        monitors, _, objectives = text.partition(" ")
        return cls(_split(monitors), _split(objectives))


def target(options: Options, entity: Mapping[str, Any]) -> str | Missing:
    """The tags that the entity's annotations name, or why there are none for this site.

    The tags of a kind come from its own annotation, where there is one, else from the name of the
    service.
    """
    known = annotations(entity)
    if SITE in known and not _is_same(known[SITE], options.site):
        return Missing(Outcome.NO_ANNOTATION, f"{SITE} is not {options.site}")
    service = _service(options.tag_key, known.get(SERVICE_NAME))
    wanted = Wanted(
        _tags(known[MONITOR_TAGS]) if MONITOR_TAGS in known else service,
        _tags(known[SLO_TAG]) if SLO_TAG in known else service,
    )
    if wanted == ((), ()):
        return Missing(Outcome.NO_ANNOTATION, "no tags of monitors or objectives")
    return wanted.text


def written(tag: str) -> str:
    """The tag as Datadog writes it: in lower case, with `_` for what a tag cannot hold.

    Source: Datadog's documentation of tags.
    """
    return _REPLACED.sub("_", tag.strip().lower())


def _is_same(annotation: Any, site: str) -> bool:
    """Whether the annotation names the site, or its web pages."""
    return isinstance(annotation, str) and annotation.strip().lower() in {site, f"app.{site}"}


def _service(key: str, name: Any) -> Tags:
    return _written([f"{key}:{name.strip()}"]) if isinstance(name, str) else ()


def _tags(text: Any) -> Tags:
    return _written(_split(text)) if isinstance(text, str) else ()


def _written(tags: Iterable[str]) -> Tags:
    """The tags, each once; none when one of them is not a tag, which would count too much."""
    found = tuple(sorted({written(tag) for tag in tags if tag.strip()}))
    sound = all(len(tag) <= MOST_CHARACTERS and not tag.endswith(":") for tag in found)
    return found if sound and len(found) <= MOST_TAGS else ()


def _split(text: str) -> Tags:
    return tuple(part for part in text.split(",") if part)
