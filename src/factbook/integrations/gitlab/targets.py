"""Which project an entity has, by its annotations and the configured host."""

import re
from collections.abc import Mapping
from typing import Any, Final

from factbook.integrations.gitlab.options import GITLAB, Options
from factbook.integrations.locations import SourceLocation, annotations, location
from factbook.outbound.outcomes import Missing, Outcome

SLUG: Final = "gitlab.com/project-slug"
INSTANCE: Final = "gitlab.com/instance"

# Names as GitLab allows them; whatever else an annotation holds never becomes part of a request.
_PART: Final = r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,254}"
_SLUG: Final = re.compile(rf"{_PART}(?:/{_PART}){{1,20}}", re.ASCII)
# What follows the path of a project; no project can have such a name.
_BELOW: Final = frozenset({"-", "blob", "edit", "raw", "tree"})


def target(options: Options, entity: Mapping[str, Any]) -> str | Missing:
    """`group/project`, with subgroups between, or why there is none at this host.

    A slug counts for the host that `gitlab.com/instance` names, else for the one of the entity's
    location, else for the one in its own key. Without a slug the location has to be on this host.
    """
    known = annotations(entity)
    place = location(entity)
    host = _host(known, place)
    own = known.get(options.slug)
    if isinstance(own, str) and (options.host != GITLAB or host in {None, GITLAB}):
        return _project(options, own)
    slug = known.get(SLUG)
    if host == options.host and isinstance(slug, str):
        return _project(options, slug)
    if place is None or {place.host, host} != {options.host}:
        return _none(f"no project on {options.host}")
    return _project(options, _slug(place))


def _host(known: Mapping[str, Any], place: SourceLocation | None) -> str | None:
    """The host that a slug without one of its own is about."""
    if INSTANCE not in known:
        return place.host if place else None
    named = known[INSTANCE]
    return named.strip().lower() if isinstance(named, str) else ""


def _slug(place: SourceLocation) -> str:
    """The path without a branch and what is below it."""
    parts = place.path.split("/")
    end = next((i for i, part in enumerate(parts) if i >= 2 and part in _BELOW), len(parts))
    return "/".join(parts[:end]).removesuffix(".git")


def _project(options: Options, slug: str) -> str | Missing:
    found = slug.strip()
    if not _SLUG.fullmatch(found) or {".", ".."} & set(found.split("/")):
        return _none("what the annotation names is not group/project")
    wanted = {group.lower() for group in options.groups}
    if wanted and found.partition("/")[0].lower() not in wanted:
        return _none("a group that is not configured")
    return found


def _none(detail: str) -> Missing:
    return Missing(Outcome.NO_ANNOTATION, detail)
