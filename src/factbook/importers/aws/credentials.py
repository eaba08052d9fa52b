"""Keys to sign with: those of the settings or the environment, and those of a role."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from factbook.importers.aws.options import AwsImportOptions
from factbook.importers.aws.signatures import AwsKeys, AwsRequest, Scope, canonical_query, signed
from factbook.outbound import HttpClient
from factbook.outbound.outcomes import Answer, Missing, Outcome, read_as

_SESSION: Final = "factbook"
_VERSION: Final = "2011-06-15"

NO_KEYS: Final = Missing(
    Outcome.REFUSED,
    "there is no credential: neither keys in the settings, nor AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, nor AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN",
)
_NO_FILE: Final = Missing(Outcome.REFUSED, "AWS_WEB_IDENTITY_TOKEN_FILE cannot be read")
_NO_ROLE: Final = "the role cannot be assumed"


class StsCredentials(msgspec.Struct, rename="pascal"):
    """Temporary keys in an answer of STS."""

    access_key_id: str
    secret_access_key: str
    session_token: str

    def __repr__(self) -> str:
        """Without the secrets."""
        return "StsCredentials(…)"


class _AssumedRole(msgspec.Struct, rename="pascal"):
    credentials: StsCredentials


async def keys(
    options: AwsImportOptions,
    environment: Mapping[str, str],
    sts: HttpClient,
    now: int,
) -> AwsKeys | Missing:
    """The keys to read the organization with, or the reason that there are none.

    Those of the settings go before those of the environment; with a role they only assume it.
    """
    own = _given(options, environment) or await _web_identity(options, environment, sts)
    if isinstance(own, Missing) or not options.role:
        return own
    parameters = {"RoleArn": options.role, "RoleSessionName": _SESSION}
    if options.external_id:
        parameters["ExternalId"] = options.external_id
    return await _assumed(options, "AssumeRole", parameters, sts, own, now)


def _given(options: AwsImportOptions, environment: Mapping[str, str]) -> AwsKeys | None:
    if options.access_key_id:
        return AwsKeys(options.access_key_id, options.secret_access_key, options.session_token)
    id_, secret = (
        environment.get(f"AWS_{name}", "") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
    )
    return (
        AwsKeys(id_, secret, environment.get("AWS_SESSION_TOKEN", "")) if id_ and secret else None
    )


async def _web_identity(
    options: AwsImportOptions, environment: Mapping[str, str], sts: HttpClient
) -> AwsKeys | Missing:
    """The keys of the role that a Kubernetes service account may assume."""
    file = environment.get("AWS_WEB_IDENTITY_TOKEN_FILE", "")
    role = environment.get("AWS_ROLE_ARN", "")
    if not file or not role:
        return NO_KEYS
    try:
        token = await asyncio.to_thread(Path(file).read_text)
    except (OSError, ValueError):
        return _NO_FILE
    parameters = {"RoleArn": role, "RoleSessionName": _SESSION, "WebIdentityToken": token.strip()}
    return await _assumed(options, "AssumeRoleWithWebIdentity", parameters, sts, None, 0)


async def _assumed(
    options: AwsImportOptions,
    action: str,
    parameters: Mapping[str, str],
    sts: HttpClient,
    own: AwsKeys | None,
    now: int,
) -> AwsKeys | Missing:
    """The keys of a role, asked for with the keys that one has, if there are any."""
    query = canonical_query({**parameters, "Action": action, "Version": _VERSION})
    headers = {"accept": "application/json"}
    if own is not None:
        request = AwsRequest("GET", f"{sts.base_url}/", query, headers)
        headers = signed(request, own, Scope("sts", options.sts_region), now)
    answer = await sts.get(f"/?{query}", headers=headers)
    if not answer.ok:
        return _refused(answer)
    found = answer.data.get(f"{action}Response", {}) if isinstance(answer.data, dict) else {}
    result = (
        read_as(found.get(f"{action}Result"), _AssumedRole) if isinstance(found, dict) else None
    )
    if not isinstance(result, _AssumedRole):
        return Missing(Outcome.TRANSIENT, f"{_NO_ROLE}: STS answered in an unknown form")
    temporary = result.credentials
    return AwsKeys(temporary.access_key_id, temporary.secret_access_key, temporary.session_token)


def _refused(answer: Answer) -> Missing:
    if answer.status in {400, 401, 403}:
        return Missing(Outcome.REFUSED, f"{_NO_ROLE}: STS answered {answer.status}")
    return answer.missing
