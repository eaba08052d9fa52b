"""Settings of a GitHub instance, and the repository there that annotations name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final

import msgspec

from factbook.integrations.code_host import CodeHostOptions
from factbook.integrations.integration import annotations, no_annotation
from factbook.integrations.locations import location
from factbook.outbound.outcomes import Missing
from factbook.settings.option_tables import about, url_origin

GITHUB: Final = "github.com"
SLUG: Final = "github.com/project-slug"
_TENANT: Final = ".ghe.com"


class GithubOptions(CodeHostOptions, frozen=True, kw_only=True):
    """Instance of GitHub with one credential: a token, or an app's installation."""

    EXAMPLE: ClassVar[str] = "github.example.com"
    # Names that GitHub gives out; what else an annotation holds never becomes part of a request.
    PATTERN: ClassVar[re.Pattern[str]] = re.compile(
        r"[a-z0-9][a-z0-9_-]{0,98}/[a-z0-9._-]{1,100}", re.ASCII
    )

    host: Annotated[str, about("Host that people and annotations name.")] = GITHUB
    api_url: Annotated[
        str,
        about(
            "Address of the REST interface. Empty: `https://api.<host>` of github.com and GHE.com, "
            "`https://<host>/api/v3` of an Enterprise server."
        ),
    ] = ""
    graphql_url: Annotated[
        str, about("Address of the GraphQL interface. Empty: it follows from `api_url`.")
    ] = ""
    clone_url: Annotated[
        str,
        about(
            "Address that repositories whose tree is too large for the interface are cloned from. "
            "Empty: `https://<host>`."
        ),
    ] = ""
    token: Annotated[str, about("Secret. A personal access token.")] = ""
    app_id: Annotated[str, about("Id or client id of an app, instead of a token.")] = ""
    installation_id: Annotated[str, about("Id of the app's installation.")] = ""
    private_key: Annotated[str, about("Secret. The app's private key, in PEM.")] = ""
    organizations: Annotated[
        list[str], about("Owners to ask for. Empty: every owner that annotations name.")
    ] = msgspec.field(default_factory=list)
    exclude_bots: Annotated[bool, about("Leave pull requests of bots out of merge times.")] = False

    @property
    def rest(self) -> str:
        """The address of the REST interface, without a slash at its end."""
        is_cloud = self.host == GITHUB or self.host.endswith(_TENANT)
        default = f"https://api.{self.host}" if is_cloud else f"https://{self.host}/api/v3"
        return (self.api_url or default).rstrip("/")

    @property
    def graphql(self) -> str:
        """The address of the GraphQL interface: on a server `/api/graphql`, else `/graphql`."""
        return self.graphql_url or f"{self.rest.removesuffix('/v3')}/graphql"

    @property
    def git(self) -> str:
        """The address of the host's repositories, without a slash at its end."""
        return (self.clone_url or f"https://{self.host}").rstrip("/")

    @property
    def owners(self) -> Sequence[str]:
        """The organizations."""
        return self.organizations

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        yield from super().problems()
        app = (self.app_id, self.installation_id, self.private_key)
        if not self.git.startswith(("https://", "http://")):
            yield "clone_url has to begin with https://"
        if url_origin(self.graphql) != self.origin:
            yield "graphql_url has to be on the same host as api_url"
        if bool(self.token) == any(app):
            yield "either a token or an app is needed"
        elif any(app) and not all(app):
            yield "an app needs app_id, installation_id and private_key"


def target(options: GithubOptions, entity: Mapping[str, Any]) -> str | Missing:
    """`owner/name` in lower case, or the reason that there is none at this host.

    A slug counts for the host that the entity's location names, else for the one in its own key.
    Without a slug, the location itself has to be on this host.
    """
    known = annotations(entity)
    place = location(entity)
    own = known.get(options.slug)
    is_here = place is None or place.host == options.host
    if isinstance(own, str) and (options.host != GITHUB or is_here):
        return options.named(own)
    if place is None or place.host != options.host:
        return no_annotation(f"no repository on {options.host}")
    given = known.get(SLUG)
    return options.named(given) if isinstance(given, str) else options.located(place)
