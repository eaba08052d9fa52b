"""Settings of a Snyk instance, `[integrations.snyk.<name>]`, and projects that annotations name."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec

from factbook.integrations.integration import (
    SOURCE_LOCATION,
    InstanceOptions,
    find_location,
    get_annotations,
    report_bad_annotation,
    report_no_annotation,
    resolve_slug,
)
from factbook.outbound.outcomes import Missing
from factbook.settings.option_tables import about

UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VERSION: Final = re.compile(r"\d{4}-\d{2}-\d{2}(~(beta|experimental))?", re.ASCII)


class SnykOptions(InstanceOptions, frozen=True, kw_only=True):
    """Instance of Snyk with one credential, and the organizations that may be requested."""

    token: Annotated[str, about("Secret. The key of a service account, or an API token.")] = ""
    organizations: Annotated[
        list[str],
        about(
            "Ids of the organizations that may be asked, at least one. `name=id` also gives one "
            "the name that `snyk.io/org-name` calls it by."
        ),
    ] = msgspec.field(default_factory=list)
    base_url: Annotated[
        str,
        about(
            "Address of the REST interface. In other regions `https://api.eu.snyk.io/rest` or "
            "`https://api.au.snyk.io/rest`."
        ),
    ] = "https://api.snyk.io/rest"
    version: Annotated[str, about("Version of the interface to ask for, a date.")] = "2024-10-15"
    exact: Annotated[
        bool,
        about(
            "Count the issues that are open and not ignored one by one, rather than take the "
            "figures of each project's latest snapshot. Takes one call for 100 issues."
        ),
    ] = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the organizations, in lower case, each once."""
        return tuple(dict.fromkeys(_split_entry(entry)[1] for entry in self.organizations))

    @property
    def names(self) -> dict[str, str]:
        """The ids of organizations that have a name, by their name in lower case."""
        return {name: id_ for name, id_ in map(_split_entry, self.organizations) if name}

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        if not self.token:
            yield "a token is needed"
        if not self.ids:
            yield "organizations has to name at least one organization"
        elif not all(UUID.fullmatch(id_) for id_ in self.ids):
            yield "organizations has to be of ids, such as those in Snyk's settings"
        if not self.base_url.startswith(("https://", "http://")):
            yield "base_url has to begin with https://"
        if not _VERSION.fullmatch(self.version):
            yield "version has to be a date such as 2024-10-15"


def _split_entry(entry: str) -> tuple[str, str]:
    name, _, id_ = entry.lower().rpartition("=")
    return name.strip(), id_.strip()


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


def find_snyk_target(options: SnykOptions, entity: Mapping[str, Any]) -> str | Missing:
    """The selector as text, equal for entities with the same selection; or the reason for none."""
    try:
        found = _make_selector(options, entity)
    except _NothingError as error:
        return report_no_annotation(str(error))
    except _UnusableError as error:
        return report_bad_annotation(str(error))
    return msgspec.json.encode(found).decode()


def read_selector(text: str) -> Selector:
    """The selector in a target. Raises msgspec.MsgspecError for invalid text."""
    return msgspec.json.decode(text, type=Selector)


def _make_selector(options: SnykOptions, entity: Mapping[str, Any]) -> Selector:
    known = {key: value for key, value in get_annotations(entity).items() if value != ""}
    targets, projects = _list_targets(known), _list_ids(known, PROJECT_IDS)
    host, slug = ("", "") if targets or projects else _find_repository(entity, known)
    return Selector(
        organizations=_list_organizations(options, known),
        targets=targets,
        projects=projects,
        excluded=_list_ids(known, EXCLUDED),
        host=host,
        slug=slug,
    )


def _list_targets(known: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids and names from the first annotation that has any."""
    if TARGETS in known:
        return _sort_distinct(_split_list(known, TARGETS))
    key = next((key for key in (TARGET_ID, TARGET_NAME) if key in known), None)
    return (_get_text(known, key),) if key else ()


def _list_organizations(options: SnykOptions, known: Mapping[str, Any]) -> tuple[str, ...]:
    """The organizations that the annotations select, each of them configured; else all."""
    if ORG_IDS in known or ORG_ID in known:
        wanted = _split_list(known, ORG_IDS if ORG_IDS in known else ORG_ID)
    elif ORG_NAME in known:
        wanted = (options.names.get(_get_text(known, ORG_NAME), ""),)
    else:
        wanted = options.ids
    if not set(wanted) <= set(options.ids):
        raise _NothingError("an organization that is not configured")
    return _sort_distinct(wanted)


def _find_repository(entity: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[str, str]:
    """The host and the path of the entity's repository, in lower case.

    A slug counts for the host that the entity's location names, else for the one in its key.
    """
    place = find_location(entity)
    for key, host in SLUGS.items():
        if key in known:
            at = place.host if place else host
            named = resolve_slug(_get_text(known, key), at)
            if named is None:
                raise _UnusableError(f"{key} names another host than {at}")
            return at, _cut_path(at, named.path) if named.scheme else named.path.strip("/")
    if place is None:
        raise _NothingError("neither a project, a target nor a repository")
    path = _cut_path(place.host, place.path)
    if "/" not in path or not _is_usable_text(path):
        raise _UnusableError("the location is not that of a repository")
    return place.host, path


def _cut_path(host: str, path: str) -> str:
    """The repository's part of the path: two segments on GitHub, more where groups nest."""
    parts = path.lower().split("/")
    inside = [i for i, part in enumerate(parts) if i >= 2 and part in _INSIDE]
    end = 2 if host == "github.com" else min(inside, default=len(parts))
    return "/".join(parts[:end]).removesuffix(".git")


def _list_ids(known: Mapping[str, Any], key: str) -> tuple[str, ...]:
    if key not in known:
        return ()
    found = _split_list(known, key)
    if not all(UUID.fullmatch(id_) for id_ in found):
        raise _UnusableError(f"{key} is not a list of ids")
    return _sort_distinct(found)


def _split_list(known: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in _get_text(known, key).split(",") if part.strip())
    if not found:
        raise _UnusableError(f"{key} is empty")
    return found


def _get_text(known: Mapping[str, Any], key: str) -> str:
    value = known[key]
    text = value.strip().lower() if isinstance(value, str) else ""
    if not _is_usable_text(text):
        raise _UnusableError(f"{key} is not a text that can be used")
    return text


def _is_usable_text(text: str) -> bool:
    """True if it can be a name: not empty, not too long, and without characters no name has."""
    return 0 < len(text) <= _LONGEST and text.isprintable()


def _sort_distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))
