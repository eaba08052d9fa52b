"""Settings of a GitHub instance, the repository there that annotations name, and the credentials.

A credential is a token, or an app that fetches a token valid for one hour as needed. Source:
GitHub's documentation of app authentication: a JSON Web Token signed with RS256, valid for at most
ten minutes, is exchanged for the token of an installation.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from factbook.clock import MINUTE, SECOND, Clock
from factbook.integrations.code_host import CodeHostOptions
from factbook.integrations.integration import find_location, get_annotations, report_no_annotation
from factbook.outbound.client import ANONYMOUS, Credential, HttpClient, build_path
from factbook.outbound.git import make_git_headers
from factbook.outbound.outcomes import Answer, Missing, Outcome
from factbook.settings.option_tables import about, url_origin

GITHUB: Final = "github.com"
SLUG: Final = "github.com/project-slug"
_TENANT: Final = ".ghe.com"
# In the header of a key in PEM: of PKCS #8, and of the older format.
_ENCRYPTED_MARKS: Final = ("BEGIN ENCRYPTED PRIVATE KEY", "4,ENCRYPTED")


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
        elif any(mark in self.private_key for mark in _ENCRYPTED_MARKS):
            yield "private_key is encrypted; use the output of `openssl rsa -in app.pem` instead"


def find_github_target(options: GithubOptions, entity: Mapping[str, Any]) -> str | Missing:
    """`owner/name` in lower case, or the reason that there is none at this host.

    A slug counts for the host that the entity's location names, else for the one in its own key.
    Without a slug, the location itself has to be on this host.
    """
    known = get_annotations(entity)
    place = find_location(entity)
    own = known.get(options.slug)
    is_here = place is None or place.host == options.host
    if isinstance(own, str) and (options.host != GITHUB or is_here):
        return options.named(own)
    if place is None or place.host != options.host:
        return report_no_annotation(f"no repository on {options.host}")
    given = known.get(SLUG)
    return options.named(given) if isinstance(given, str) else options.located(place)


# Clocks differ: the documentation advises to date the issue a minute back.
_ISSUED_BEFORE: Final = 60
_VALID: Final = 9 * 60
_RENEWED_BEFORE: Final = MINUTE
_NO_APP: Final = "the app or its installation is not accepted"


class Credentials:
    """Credentials of one instance, for the API and for the host of its Git repositories."""

    def __init__(self, name: str, options: GithubOptions, clock: Clock) -> None:
        self._name = name
        self._options = options
        self._clock = clock
        self._interface = ANONYMOUS

    def interface(self, anonymous: HttpClient) -> Credential:
        """The credential for the API; an app fetches its tokens through the anonymous client."""
        self._interface = self._made(anonymous)
        return self._interface

    def git(self, _: HttpClient) -> Credential:
        """The same token in the form that Git sends."""
        return Credential(self._name, f"{self._name} git", self._shown_by_git)

    def _made(self, anonymous: HttpClient) -> Credential:
        options = self._options
        if options.token:
            return Credential.fixed(self._name, {"authorization": f"Bearer {options.token}"})
        tokens = _InstallationToken(options, self._clock, anonymous)
        identity = f"app {options.app_id} {options.installation_id}"
        return Credential(self._name, identity, tokens.authorize)

    async def _shown_by_git(self) -> Mapping[str, str] | Answer:
        proof = await self._interface.authorize()
        if isinstance(proof, Answer):
            return proof
        token = proof.get("authorization", "").partition(" ")[2]
        return make_git_headers("x-access-token", token)


class _InstallationToken:
    """Token of one app's installation, kept until a minute before it expires."""

    def __init__(self, options: GithubOptions, clock: Clock, anonymous: HttpClient) -> None:
        self._options = options
        self._clock = clock
        self._anonymous = anonymous
        self._token = ""
        self._renewed_at = 0
        self._expires_at = 0
        self._renewing = asyncio.Lock()

    async def authorize(self) -> Mapping[str, str] | Answer:
        """The headers of a call, or the answer that refused a token."""
        async with self._renewing:
            now = self._clock()
            # By a clock that was set back since, the token seems to be valid for longer.
            if not self._renewed_at <= now < self._expires_at - _RENEWED_BEFORE:
                answer = await self._renew(now)
                if not answer.ok:
                    return answer
        return {"authorization": f"Bearer {self._token}"}

    async def _renew(self, now: int) -> Answer:
        installation = build_path(
            "app", "installations", self._options.installation_id, "access_tokens"
        )
        try:
            proof = sign_app_token(self._options.app_id, self._options.private_key, now)
        except (JoseError, TypeError, ValueError):
            return Answer(Outcome.REFUSED, detail="the app's private key cannot be used")
        answer = await self._anonymous.post(
            f"{self._options.rest}{installation}",
            json={},
            headers={"authorization": f"Bearer {proof}"},
        )
        if answer.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}:
            # It concerns the app, not the entity that was to be asked about.
            return replace(answer, outcome=Outcome.REFUSED, detail=f"{answer.detail}; {_NO_APP}")
        if not answer.ok:
            return answer
        try:
            self._token = str(answer.data["token"])
            expires = datetime.fromisoformat(answer.data["expires_at"])
        except (KeyError, TypeError, ValueError):
            return Answer(Outcome.TRANSIENT, answer.status, detail="no token in the answer")
        self._expires_at = round(expires.timestamp() * SECOND)
        self._renewed_at = now
        return answer


def sign_app_token(app_id: str, private_key: str, now: int) -> str:
    """The JSON Web Token that authenticates an app at this time.

    Raises JoseError or ValueError for an invalid key, TypeError for an encrypted SSH key.
    """
    issued = now // SECOND
    claims = {"iat": issued - _ISSUED_BEFORE, "exp": issued + _VALID, "iss": app_id}
    # In the environment a key often stands in one line.
    key = RSAKey.import_key(private_key.replace("\\n", "\n"))
    return jwt.encode({"alg": "RS256"}, claims, key, ["RS256"])
