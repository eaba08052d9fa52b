"""Settings of a GitHub instance, and the repository there that annotations name."""

from typing import Annotated, Final

import msgspec

from factbook.errors import ConfigurationError
from factbook.settings.option_tables import HOST, about, origin

GITHUB: Final = "github.com"
_TENANT: Final = ".ghe.com"


class GithubOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Instance of GitHub with one credential: a token, or an app's installation."""

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
    token: Annotated[str, about("Secret. A personal access token.")] = ""
    app_id: Annotated[str, about("Id or client id of an app, instead of a token.")] = ""
    installation_id: Annotated[str, about("Id of the app's installation.")] = ""
    private_key: Annotated[str, about("Secret. The app's private key, in PEM.")] = ""
    organizations: Annotated[
        list[str], about("Owners to ask for. Empty: every owner that annotations name.")
    ] = []
    exclude_bots: Annotated[bool, about("Leave pull requests of bots out of merge times.")] = False

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ConfigurationError(problem)

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Options(host={self.host!r}, api_url={self.api_url!r})"

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
    def origin(self) -> str:
        """Scheme and host of both interfaces."""
        return origin(self.rest)

    @property
    def slug(self) -> str:
        """The annotation of this host; the name of an annotation has no port."""
        return f"{self.host.partition(':')[0]}/project-slug"


def _problems(options: GithubOptions) -> list[str]:
    app = (options.app_id, options.installation_id, options.private_key)
    problems = []
    if not HOST.fullmatch(options.host):
        problems.append("host has to be a host name in lower case, such as github.example.com")
    if not options.rest.startswith(("https://", "http://")):
        problems.append("api_url has to begin with https://")
    if origin(options.graphql) != options.origin:
        problems.append("graphql_url has to be on the same host as api_url")
    if bool(options.token) == any(app):
        problems.append("either a token or an app is needed")
    elif any(app) and not all(app):
        problems.append("an app needs app_id, installation_id and private_key")
    return problems
