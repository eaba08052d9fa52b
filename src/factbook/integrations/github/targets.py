"""Which repository of one GitHub an entity's annotations point to."""

import re
from collections.abc import Mapping
from typing import Any, Final

from factbook.integrations.github.options import GITHUB, GithubOptions
from factbook.integrations.locations import SourceLocation, annotations, location
from factbook.outbound.outcomes import Missing, Outcome

SLUG: Final = "github.com/project-slug"

# Names that GitHub gives out; what else an annotation holds never becomes part of a request.
_SLUG: Final = re.compile(r"([a-z0-9](?:[a-z0-9_-]{0,98}))/([a-z0-9._-]{1,100})", re.ASCII)


def target(options: GithubOptions, entity: Mapping[str, Any]) -> str | Missing:
    """`owner/name` in lower case, or why there is none at this host.

    A slug counts for the host that the entity's location names, else for the one in its own key.
    Without a slug the location itself has to be on this host.
    """
    known = annotations(entity)
    place = location(entity)
    own = known.get(options.slug)
    if isinstance(own, str) and (options.host != GITHUB or _is_here(place, options.host)):
        return _repository(options, own)
    if place is None or place.host != options.host:
        return _none(f"no repository on {options.host}")
    slug = known.get(SLUG)
    return _repository(options, slug if isinstance(slug, str) else _slug(place))


def _slug(place: SourceLocation) -> str:
    """The first two parts of the path: what follows is a branch and a folder."""
    return "/".join(place.path.split("/")[:2]).removesuffix(".git")


def _is_here(place: SourceLocation | None, host: str) -> bool:
    return place is None or place.host == host


def _repository(options: GithubOptions, slug: str) -> str | Missing:
    found = _SLUG.fullmatch(slug.strip().lower())
    if not found or found[2] in {".", ".."}:
        return _none("what the annotation names is not owner/name")
    wanted = {owner.lower() for owner in options.organizations}
    if wanted and found[1] not in wanted:
        return _none("an organization that is not configured")
    return found[0]


def _none(detail: str) -> Missing:
    return Missing(Outcome.NO_ANNOTATION, detail)
