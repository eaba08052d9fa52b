"""Settings of a GitLab instance, and the project there that annotations name."""

from typing import Annotated, Final

import msgspec

from factbook.errors import ConfigurationError
from factbook.settings.option_tables import HOST, about, origin

GITLAB: Final = "gitlab.com"
_VERSION: Final = "/v4"


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One instance of GitLab with one token."""

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
    ] = []
    exclude_bots: Annotated[bool, about("Leave merge requests of bots out of merge times.")] = False

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ConfigurationError(problem)

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Options(host={self.host!r}, api_url={self.api_url!r})"

    @property
    def rest(self) -> str:
        """The address of the REST interface, without a slash at its end."""
        return (self.api_url or f"https://{self.host}/api{_VERSION}").rstrip("/")

    @property
    def graphql(self) -> str:
        """The address of the GraphQL interface, beside that of REST."""
        return f"{self.rest.removesuffix(_VERSION)}/graphql"

    @property
    def origin(self) -> str:
        """Scheme and host of both interfaces."""
        return origin(self.rest)

    @property
    def slug(self) -> str:
        """The annotation of this host; the name of an annotation has no port."""
        return f"{self.host.partition(':')[0]}/project-slug"


def _problems(options: Options) -> list[str]:
    problems = []
    if not HOST.fullmatch(options.host):
        problems.append("host has to be a host name in lower case, such as gitlab.example.com")
    if not options.rest.startswith(("https://", "http://")):
        problems.append("api_url has to begin with https://")
    if not options.rest.endswith(_VERSION):
        problems.append("api_url has to end with /v4")
    if not options.token:
        problems.append("a token is needed")
    return problems
