"""Credentials for GitHub: a token, or an app that fetches a token valid for one hour as needed.

Source: GitHub's documentation of app authentication: a JSON Web Token signed with RS256, valid for
at most ten minutes, is exchanged for the token of an installation.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from factbook.clock import MINUTE, SECOND, Clock
from factbook.integrations.github.options import GithubOptions
from factbook.outbound.client import ANONYMOUS, Credential, HttpClient, build_path
from factbook.outbound.git import make_git_headers
from factbook.outbound.outcomes import Answer, Outcome

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
            proof = signed(self._options.app_id, self._options.private_key, now)
        except (JoseError, ValueError):
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


def signed(app_id: str, private_key: str, now: int) -> str:
    """The JSON Web Token that authenticates an app at this time.

    Raises JoseError or ValueError for an invalid key.
    """
    issued = now // SECOND
    claims = {"iat": issued - _ISSUED_BEFORE, "exp": issued + _VALID, "iss": app_id}
    # In the environment a key often stands in one line.
    key = RSAKey.import_key(private_key.replace("\\n", "\n"))
    return jwt.encode({"alg": "RS256"}, claims, key, ["RS256"])
