"""Settings of a GitLab instance, and the project there that annotations name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final

import msgspec

from factbook.integrations.code_host import CodeHostOptions
from factbook.integrations.integration import (
    SourceLocation,
    find_location,
    get_annotations,
    report_no_annotation,
)
from factbook.outbound.outcomes import Missing
from factbook.settings.option_tables import about

GITLAB: Final = "gitlab.com"
SLUG: Final = "gitlab.com/project-slug"
INSTANCE: Final = "gitlab.com/instance"

_VERSION: Final = "/v4"
_PART: Final = r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,254}"
# What follows the path of a project; no project can have such a name.
_BELOW: Final = frozenset({"-", "blob", "edit", "raw", "tree"})


class GitlabOptions(CodeHostOptions, frozen=True, kw_only=True):
    """Instance of GitLab with one token."""

    API: ClassVar[str] = f"/api{_VERSION}"
    EXAMPLE: ClassVar[str] = "gitlab.example.com"
    FORM: ClassVar[str] = "group/project"
    OWNER: ClassVar[str] = "a group"
    # Names as GitLab allows them; what else an annotation holds never becomes part of a request.
    PATTERN: ClassVar[re.Pattern[str]] = re.compile(rf"{_PART}(?:/{_PART}){{1,20}}", re.ASCII)
    KEEPS_CASE: ClassVar[bool] = True

    host: Annotated[str, about("Host that people and annotations name.")] = GITLAB
    api_url: Annotated[
        str,
        about(
            "Address of the REST interface, which ends with `/v4`; that of GraphQL follows from "
            "it. Empty: `https://<host>/api/v4`."
        ),
    ] = ""
    token: Annotated[
        str, about("Secret. A personal, group or project access token with `read_api`.")
    ] = ""
    groups: Annotated[
        list[str], about("Top-level groups to ask for. Empty: every one that annotations name.")
    ] = msgspec.field(default_factory=list)
    exclude_bots: Annotated[bool, about("Leave merge requests of bots out of merge times.")] = False

    @property
    def graphql(self) -> str:
        """The address of the GraphQL interface, beside that of REST."""
        return f"{self.rest.removesuffix(_VERSION)}/graphql"

    @property
    def owners(self) -> Sequence[str]:
        """The groups."""
        return self.groups

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        yield from super().problems()
        if not self.rest.endswith(_VERSION):
            yield "api_url has to end with /v4"
        if not self.token:
            yield "a token is needed"

    def path_of(self, place: SourceLocation) -> str:
        """The path without the branch and the part below it."""
        parts = place.path.split("/")
        end = next((i for i, part in enumerate(parts) if i >= 2 and part in _BELOW), len(parts))
        return "/".join(parts[:end]).removesuffix(".git")


def find_gitlab_target(options: GitlabOptions, entity: Mapping[str, Any]) -> str | Missing:
    """`group/project`, with subgroups between, or the reason that there is none at this host.

    A slug counts for the host that `gitlab.com/instance` names, else for the one of the entity's
    location, else for the one in its own key. Without a slug the location has to be on this host.
    """
    known = get_annotations(entity)
    place = find_location(entity)
    host = _choose_host(known, place)
    own = known.get(options.slug)
    if isinstance(own, str) and (options.host != GITLAB or host in {None, GITLAB}):
        return options.named(own)
    given = known.get(SLUG)
    if host == options.host and isinstance(given, str):
        return options.named(given)
    if place is None or {place.host, host} != {options.host}:
        return report_no_annotation(f"no project on {options.host}")
    return options.located(place)


def _choose_host(known: Mapping[str, Any], place: SourceLocation | None) -> str | None:
    """The host of a slug that does not name one."""
    if INSTANCE not in known:
        return place.host if place else None
    named = known[INSTANCE]
    return named.strip().lower() if isinstance(named, str) else ""
