"""Which repository of one Gitea or Forgejo an entity's annotations point to."""

import re
from collections.abc import Mapping
from typing import Any, Final

from factbook.integrations.gitea.options import Options
from factbook.integrations.locations import annotations, location
from factbook.outbound.outcomes import Missing, Outcome

# Names that Gitea gives out; what else an annotation holds never becomes part of a request.
_SLUG: Final = re.compile(r"([a-z0-9][a-z0-9._-]{0,99})/([a-z0-9._-]{1,100})", re.ASCII)


def target(options: Options, entity: Mapping[str, Any]) -> str | Missing:
    """`owner/name` in lower case, or why there is none at this host.

    The slug of this host counts first, then the location when it is on this host.
    """
    slug = annotations(entity).get(options.slug)
    if isinstance(slug, str):
        return _repository(options, slug)
    place = location(entity)
    if place is None or place.host != options.host:
        return _none(f"no repository on {options.host}")
    # What follows, such as src/branch/main, is a branch and a folder.
    return _repository(options, "/".join(place.path.split("/")[:2]).removesuffix(".git"))


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
