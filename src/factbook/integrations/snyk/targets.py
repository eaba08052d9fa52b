"""Projects of Snyk that an entity's annotations name.

The annotations are those of Snyk's plugin for catalogs. They select from the listings, and never
become part of a URL.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from factbook.integrations.integration import annotations, bad_annotation, no_annotation
from factbook.integrations.locations import SOURCE_LOCATION, location, slug
from factbook.integrations.snyk.options import UUID, SnykOptions
from factbook.outbound.outcomes import Missing

ORG_IDS: Final = "snyk.io/org-ids"
ORG_ID: Final = "snyk.io/org-id"
ORG_NAME: Final = "snyk.io/org-name"
TARGETS: Final = "snyk.io/targets"
TARGET_ID: Final = "snyk.io/target-id"
TARGET_NAME: Final = "snyk.io/target-name"
PROJECT_IDS: Final = "snyk.io/project-ids"
EXCLUDED: Final = "snyk.io/exclude-project-ids"
SLUGS: Final = {
    "github.com/project-slug": "github.com",
    "gitlab.com/project-slug": "gitlab.com",
}
# Each alone points to something.
SELECTING: Final = (TARGETS, TARGET_ID, TARGET_NAME, PROJECT_IDS, *SLUGS, SOURCE_LOCATION)

_LONGEST: Final = 4_000
# What code hosts put between a repository and what is in it.
_INSIDE: Final = ("-", "tree", "blob", "raw", "src")


class Selector(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Selector for the projects that belong to an entity.

    It selects projects of the `targets`, by id or by name in lower case, of the repository `slug`
    on `host`, and the `projects` by id; the `excluded` are left out.
    """

    organizations: tuple[str, ...]
    targets: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    host: str = ""
    slug: str = ""


class _UnusableError(Exception):
    """An annotation is present but has no usable value; the text is for people."""


class _NothingError(Exception):
    """The annotations name nothing that is configured; the text is for people."""


def target(options: SnykOptions, entity: Mapping[str, Any]) -> str | Missing:
    """The selector as text, equal for entities with the same selection; or the reason for none."""
    try:
        found = _selector(options, entity)
    except _NothingError as error:
        return no_annotation(str(error))
    except _UnusableError as error:
        return bad_annotation(str(error))
    return msgspec.json.encode(found).decode()


def read(text: str) -> Selector:
    """The selector in a target. Raises msgspec.MsgspecError for invalid text."""
    return msgspec.json.decode(text, type=Selector)


def _selector(options: SnykOptions, entity: Mapping[str, Any]) -> Selector:
    known = {key: value for key, value in annotations(entity).items() if value != ""}
    targets, projects = _targets(known), _ids(known, PROJECT_IDS)
    host, slug = ("", "") if targets or projects else _repository(entity, known)
    return Selector(
        organizations=_organizations(options, known),
        targets=targets,
        projects=projects,
        excluded=_ids(known, EXCLUDED),
        host=host,
        slug=slug,
    )


def _targets(known: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids and names from the first annotation that has any."""
    if TARGETS in known:
        return _sorted(_list(known, TARGETS))
    key = next((key for key in (TARGET_ID, TARGET_NAME) if key in known), None)
    return (_text(known, key),) if key else ()


def _organizations(options: SnykOptions, known: Mapping[str, Any]) -> tuple[str, ...]:
    """The organizations that the annotations select, each of them configured; else all."""
    if ORG_IDS in known or ORG_ID in known:
        wanted = _list(known, ORG_IDS if ORG_IDS in known else ORG_ID)
    elif ORG_NAME in known:
        wanted = (options.names.get(_text(known, ORG_NAME), ""),)
    else:
        wanted = options.ids
    if not set(wanted) <= set(options.ids):
        raise _NothingError("an organization that is not configured")
    return _sorted(wanted)


def _repository(entity: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[str, str]:
    """The host and the path of the entity's repository, in lower case.

    A slug counts for the host that the entity's location names, else for the one in its key.
    """
    place = location(entity)
    for key, host in SLUGS.items():
        if key in known:
            at = place.host if place else host
            named = slug(_text(known, key), at)
            if named is None:
                raise _UnusableError(f"{key} names another host than {at}")
            return at, _path(at, named.path) if named.scheme else named.path.strip("/")
    if place is None:
        raise _NothingError("neither a project, a target nor a repository")
    path = _path(place.host, place.path)
    if "/" not in path or not _is_usable(path):
        raise _UnusableError("the location is not that of a repository")
    return place.host, path


def _path(host: str, path: str) -> str:
    """The repository's part of the path: two segments on GitHub, more where groups nest."""
    parts = path.lower().split("/")
    inside = [i for i, part in enumerate(parts) if i >= 2 and part in _INSIDE]
    end = 2 if host == "github.com" else min(inside, default=len(parts))
    return "/".join(parts[:end]).removesuffix(".git")


def _ids(known: Mapping[str, Any], key: str) -> tuple[str, ...]:
    if key not in known:
        return ()
    found = _list(known, key)
    if not all(UUID.fullmatch(id_) for id_ in found):
        raise _UnusableError(f"{key} is not a list of ids")
    return _sorted(found)


def _list(known: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in _text(known, key).split(",") if part.strip())
    if not found:
        raise _UnusableError(f"{key} is empty")
    return found


def _text(known: Mapping[str, Any], key: str) -> str:
    value = known[key]
    text = value.strip().lower() if isinstance(value, str) else ""
    if not _is_usable(text):
        raise _UnusableError(f"{key} is not a text that can be used")
    return text


def _is_usable(text: str) -> bool:
    """True if it can be a name: not empty, not too long, and without characters no name has."""
    return 0 < len(text) <= _LONGEST and text.isprintable()


def _sorted(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))
