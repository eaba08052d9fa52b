"""Settings of a Gitea or Forgejo instance, and the repository there that annotations name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec

from factbook.integrations.code_host import CodeHostOptions
from factbook.integrations.integration import find_location, get_annotations, report_no_annotation
from factbook.outbound.outcomes import Missing
from factbook.settings.option_tables import about


class GiteaOptions(CodeHostOptions, frozen=True, kw_only=True):
    """Instance of Gitea or Forgejo with one token."""

    API: ClassVar[str] = "/api/v1"
    EXAMPLE: ClassVar[str] = "git.example.com"
    # Names that Gitea gives out; what else an annotation holds never becomes part of a request.
    PATTERN: ClassVar[re.Pattern[str]] = re.compile(
        r"[a-z0-9][a-z0-9._-]{0,99}/[a-z0-9._-]{1,100}", re.ASCII
    )

    host: Annotated[
        str,
        about("Needed. Host that people and annotations name, with its port if it has one."),
    ] = ""
    api_url: Annotated[str, about("Address of the interface. Empty: `https://<host>/api/v1`.")] = ""
    token: Annotated[str, about("Secret. Needed. An access token.")] = ""
    organizations: Annotated[
        list[str], about("Owners to ask for. Empty: every owner that annotations name.")
    ] = msgspec.field(default_factory=list)

    @property
    def owners(self) -> Sequence[str]:
        """The organizations."""
        return self.organizations

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        if not self.host:
            yield "a host is needed"
        yield from super().problems()
        if not self.token:
            yield "a token is needed"


def find_gitea_target(options: GiteaOptions, entity: Mapping[str, Any]) -> str | Missing:
    """`owner/name` in lower case, or the reason that there is none at this host.

    The slug of this host takes precedence over a location on this host.
    """
    given = get_annotations(entity).get(options.slug)
    if isinstance(given, str):
        return options.named(given)
    place = find_location(entity)
    if place is None or place.host != options.host:
        return report_no_annotation(f"no repository on {options.host}")
    return options.located(place)
