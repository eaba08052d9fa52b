"""What is configured of one GitHub: `[integrations.github.<name>]` of the settings."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from factbook.errors import ConfigurationError

GITHUB: Final = "github.com"
_HOST: Final = re.compile(r"[a-z0-9.-]+(:\d{1,5})?")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")


def _about(text: str) -> Meta:
    return Meta(description=text)


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One instance of GitHub with one credential: a token, or an app's installation."""

    host: Annotated[str, _about("Host that people and annotations name.")] = GITHUB
    api_url: Annotated[
        str,
        _about(
            "Address of the REST interface. Empty: `https://api.github.com`, or "
            "`https://<host>/api/v3` of an Enterprise server."
        ),
    ] = ""
    graphql_url: Annotated[
        str, _about("Address of the GraphQL interface. Empty: it follows from `api_url`.")
    ] = ""
    token: Annotated[str, _about("Secret. A personal access token.")] = ""
    app_id: Annotated[str, _about("Id or client id of an app, instead of a token.")] = ""
    installation_id: Annotated[str, _about("Id of the app's installation.")] = ""
    private_key: Annotated[str, _about("Secret. The app's private key, in PEM.")] = ""
    organizations: Annotated[
        list[str], _about("Owners to ask for. Empty: every owner that annotations name.")
    ] = []
    exclude_bots: Annotated[bool, _about("Leave pull requests of bots out of merge times.")] = False

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ConfigurationError(problem)

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Options(host={self.host!r}, api_url={self.api_url!r})"

    @property
    def rest(self) -> str:
        """The address of the REST interface, without a slash at its end."""
        default = "https://api.github.com" if self.host == GITHUB else f"https://{self.host}/api/v3"
        return (self.api_url or default).rstrip("/")

    @property
    def graphql(self) -> str:
        """The address of the GraphQL interface: on a server `/api/graphql`, else `/graphql`."""
        return self.graphql_url or f"{self.rest.removesuffix('/v3')}/graphql"

    @property
    def origin(self) -> str:
        """Scheme and host of both interfaces."""
        return origin(self.rest)


def from_settings(name: str, values: Mapping[str, Any]) -> Options:
    """The options that a table of the settings gives; no error says a value.

    Raises ConfigurationError naming the instance and what is wrong.
    """
    where = f"integrations.github.{name}"
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{where}: a name is of lower-case letters, digits, . _ and -.")
    try:
        return msgspec.convert(_split(values), Options, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{where}: {error}.") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error.message}.") from None


def _split(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, with the list as a list when it comes from a variable."""
    owners = values.get("organizations")
    if not isinstance(owners, str):
        return dict(values)
    return {**values, "organizations": [one.strip() for one in owners.split(",") if one.strip()]}


def origin(url: str) -> str:
    """Scheme and host of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _problems(options: Options) -> list[str]:
    app = (options.app_id, options.installation_id, options.private_key)
    problems = []
    if not _HOST.fullmatch(options.host):
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
