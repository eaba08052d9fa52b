"""Requests to a provider: the browser's redirect to sign in, then the token request."""

import base64
from typing import Final
from urllib.parse import quote_plus

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from factbook.auth.oidc.attempt import Attempt
from factbook.auth.oidc.fetch import HEADERS
from factbook.auth.oidc.options import ProviderOptions
from factbook.auth.oidc.provider import DiscoveryDocument
from factbook.errors import SignInError

_FORM: Final = {**HEADERS, "content-type": "application/x-www-form-urlencoded"}


def authorization_url(
    document: DiscoveryDocument, options: ProviderOptions, attempt: Attempt, redirect_uri: str
) -> str:
    """Address for the browser to sign in at (OpenID Connect Core 1.0, 3.1.2.1; RFC 7636)."""
    url: str = prepare_grant_uri(
        document.authorization_endpoint,
        options.client_id,
        "code",
        redirect_uri,
        options.scopes,
        attempt.state,
        nonce=attempt.nonce,
        code_challenge=create_s256_code_challenge(attempt.code_verifier),
        code_challenge_method="S256",
    )
    return url


def token_request(
    document: DiscoveryDocument,
    options: ProviderOptions,
    attempt: Attempt,
    redirect_uri: str,
    code: str,
) -> tuple[dict[str, str], bytes]:
    """Headers and body that exchange a code for tokens (as above, 3.1.3.1).

    Raises SignInError when the provider supports no known method of client authentication.
    """
    headers, more = _credential(document, options)
    body: str = prepare_token_request(
        "authorization_code",
        "",
        redirect_uri,
        code=code,
        code_verifier=attempt.code_verifier,
        **more,
    )
    return {**_FORM, **headers}, body.encode()


def _credential(
    document: DiscoveryDocument, options: ProviderOptions
) -> tuple[dict[str, str], dict[str, str]]:
    """Client authentication, as headers and as form parameters (RFC 6749, 2.3.1)."""
    if not options.client_secret:
        return {}, {"client_id": options.client_id}
    ways = document.token_endpoint_auth_methods_supported
    if "client_secret_basic" in ways:
        # Both are encoded as in a form first, which Authlib's own leaves out.
        pair = f"{quote_plus(options.client_id)}:{quote_plus(options.client_secret)}"
        return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, {}
    if "client_secret_post" in ways:
        return {}, {"client_id": options.client_id, "client_secret": options.client_secret}
    raise SignInError("The provider supports no known way to send the client's secret.")
