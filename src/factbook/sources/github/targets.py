"""Which repository of one GitHub an entity's annotations point to."""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from factbook.catalog.annotations import MANAGED_BY_LOCATION
from factbook.sources.github.options import GITHUB, Options
from factbook.sources.outcomes import Missing, Outcome

SLUG: Final = "github.com/project-slug"
SOURCE_LOCATION: Final = "backstage.io/source-location"

# Names that GitHub gives out; what else an annotation holds never becomes part of a request.
_SLUG: Final = re.compile(r"([a-z0-9](?:[a-z0-9_-]{0,98}))/([a-z0-9._-]{1,100})", re.ASCII)


def target(options: Options, entity: Mapping[str, Any]) -> str | Missing:
    """`owner/name` in lower case, or why there is none at this host.

    A slug counts for the host that the entity's location names, else for the one in its own key.
    Without a slug the location itself has to be on this host.
    """
    annotations = entity.get("metadata", {}).get("annotations") or {}
    location = _location(annotations)
    own = annotations.get(f"{options.host}/project-slug")
    if isinstance(own, str) and (options.host != GITHUB or _is_here(location, options.host)):
        return _repository(options, own)
    if location is None or location.host != options.host:
        return _none(f"no repository on {options.host}")
    slug = annotations.get(SLUG)
    return _repository(options, slug if isinstance(slug, str) else location.path)


class _Location:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host = parts.netloc.lower()
        self.path = "/".join(parts.path.strip("/").split("/")[:2]).removesuffix(".git")


def _location(annotations: Mapping[str, Any]) -> _Location | None:
    """The first of the two locations that is the address of something on the web."""
    for key in (SOURCE_LOCATION, MANAGED_BY_LOCATION):
        text = annotations.get(key)
        if isinstance(text, str) and text.startswith(("url:https://", "url:http://")):
            try:
                return _Location(text.removeprefix("url:"))
            except ValueError:
                return None
    return None


def _is_here(location: _Location | None, host: str) -> bool:
    return location is None or location.host == host


def _repository(options: Options, slug: str) -> str | Missing:
    found = _SLUG.fullmatch(slug.strip().lower())
    if not found or found[2] in {".", ".."}:
        return _none("what the annotation names is not owner/name")
    wanted = {owner.lower() for owner in options.organizations}
    if wanted and found[1] not in wanted:
        return _none("an organization that is not configured")
    return found[0]


def _none(detail: str) -> Missing:
    return Missing(Outcome.NO_ANNOTATION, detail)
