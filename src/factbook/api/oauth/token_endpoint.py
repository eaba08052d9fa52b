"""The token and revocation endpoints of the authorization server (RFC 6749, RFC 7009)."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from factbook.api.oauth.metadata import require_issuing
from factbook.audit import trail
from factbook.audit.trail import AuditEntry, Caller
from factbook.auth import tokens
from factbook.auth.oauth import addresses, issued_tokens, scopes, token_requests
from factbook.auth.oauth.clients import LONGEST_ID
from factbook.auth.oauth.issued_tokens import ACCESS, LIFETIMES
from factbook.auth.oauth.refusal import OAuthError
from factbook.auth.oauth.token_requests import Issuance, TokenDigests
from factbook.clock import SECOND
from factbook.errors import (
    FactbookError,
    TooManyRequestsError,
    UnavailableError,
    UnsupportedMediaTypeError,
)
from factbook.http import error_responses, urls
from factbook.http.context import State
from factbook.http.requests import Reply, Request, client_address, reply
from factbook.storage import Transaction

_LARGEST: Final = 16 * 1024
_MOST_FIELDS: Final = 50
_FORM: Final = b"application/x-www-form-urlencoded"
_VERIFIER: Final = range(43, 129)
_LONGEST_ADDRESS: Final = 2_000


async def issue(request: Request, state: State) -> Reply:
    """Exchange a code or a refresh token for an access token and another refresh token."""
    require_issuing(state)
    form = await _form(request)
    _check_resource(form, urls.own(request, state.settings))
    access, refresh = tokens.generate(), tokens.generate()
    new = TokenDigests(_digest(access, state), _digest(refresh, state))
    kind = form.get("grant_type", "")
    if kind == "authorization_code":
        digest, work = _secret(form, "code", state), _exchange(form, new, state)
    elif kind == "refresh_token":
        digest, work = _secret(form, "refresh_token", state), _refresh(form, new, state)
    else:
        raise OAuthError(
            "grant_type has to be authorization_code or refresh_token.",
            code="unsupported_grant_type",
        )
    done = await _done(request, state, digest, work)
    return reply(
        {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": LIFETIMES[ACCESS] // SECOND,
            "refresh_token": refresh,
            "scope": scopes.written(done.permissions),
        },
        cache_control="no-store",
    )


async def revoke(request: Request, state: State) -> Reply:
    """End a token; nothing is said of one that there is not."""
    require_issuing(state)
    form = await _form(request)
    token, client = _secret(form, "token", state), _client(form)
    if await _is_known(token, state):
        await _done(request, state, token, lambda tx: token_requests.revoke(tx, token, client))
    return reply({}, cache_control="no-store")


def errors(error: FactbookError, request: Request) -> Reply:
    """Error as RFC 6749 has it, section 5.2."""
    message = error_responses.told(error, request)
    if isinstance(error, OAuthError):
        code = error.code
    elif isinstance(error, TooManyRequestsError | UnavailableError):
        code = "temporarily_unavailable"
    else:
        code = (
            "server_error"
            if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
            else "invalid_request"
        )
    body = {"error": code, "error_description": message.replace('"', "'")}
    return Reply(reply(body).body, error.status, error.headers())


def _exchange(
    form: dict[str, str], new: TokenDigests, state: State
) -> Callable[[Transaction], Issuance]:
    verifier = form.get("code_verifier", "")
    if len(verifier) not in _VERIFIER:
        raise OAuthError("code_verifier has to have 43 to 128 characters.", code="invalid_grant")
    code, client, now = _secret(form, "code", state), _client(form), state.clock()
    redirect_uri = form.get("redirect_uri", "")
    return lambda transaction: token_requests.exchange(
        transaction,
        code=code,
        client=client,
        redirect_uri=redirect_uri,
        verifier=verifier,
        new=new,
        now=now,
    )


def _refresh(
    form: dict[str, str], new: TokenDigests, state: State
) -> Callable[[Transaction], Issuance]:
    token, client, now = _secret(form, "refresh_token", state), _client(form), state.clock()
    scope = scopes.known(form.get("scope", "")[: scopes.LONGEST])
    return lambda transaction: token_requests.refresh(
        transaction, token=token, client=client, scope=scope, new=new, now=now
    )


async def _done(
    request: Request, state: State, digest: str, work: Callable[[Transaction], Issuance]
) -> Issuance:
    """Outcome of a request, recorded where it ended a consent. Raises OAuthError."""
    address = client_address(request.scope, state.proxies)
    if await _is_known(digest, state):
        # Whose it is, is known only once the token is found.
        done = await state.database.write(
            lambda tx: _recorded(tx, work(tx), address, state.clock())
        )
    else:
        done = token_requests.UNKNOWN
    if done.error is None:
        return done
    # A good token is not refused for the failures of others at the same address.
    if seconds := state.failures.take(address):
        raise TooManyRequestsError(
            "Too many failed requests from this address.", retry_after=seconds
        )
    raise done.error


async def _is_known(digest: str, state: State) -> bool:
    """True for what was issued here: anybody can ask, and nothing made up keeps a write waiting."""
    state.database.refresh()
    return await issued_tokens.is_known(state.database, digest)


def _recorded(transaction: Transaction, done: Issuance, address: str, now: int) -> Issuance:
    if done.consent is not None and done.ended:
        detail = {"client": done.consent.client, "why": done.ended}
        entry = AuditEntry("consent.revoke", done.consent.id, detail)
        caller = Caller(done.consent.person, now, address)
        trail.append(transaction, trail.record(caller, entry, status=HTTPStatus.OK))
    return done


async def _form(request: Request) -> dict[str, str]:
    """Fields of the body. Raises OAuthError, UnsupportedMediaTypeError, PayloadTooLargeError."""
    type_ = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if type_ != _FORM:
        raise UnsupportedMediaTypeError("The body has to be a form.")
    body = await request.body(_LARGEST, "a form of OAuth")
    try:
        text = bytes(body).decode("ascii")
        pairs = parse_qsl(
            text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except (UnicodeDecodeError, ValueError):
        raise OAuthError("The form cannot be read.") from None
    if len(fields := dict(pairs)) != len(pairs):
        raise OAuthError("Each parameter may be given only once.")
    return fields


def _check_resource(form: dict[str, str], server: str) -> None:
    resource = form.get("resource", addresses.resource(server))
    if len(resource) > _LONGEST_ADDRESS or not addresses.is_resource(resource, server):
        raise OAuthError(f"resource has to be {addresses.resource(server)}.", code="invalid_target")


def _client(form: dict[str, str]) -> str:
    client = form.get("client_id", "")
    if not 1 <= len(client) <= LONGEST_ID:
        raise OAuthError("client_id has to say which client it is.", code="invalid_client")
    return client


def _secret(form: dict[str, str], name: str, state: State) -> str:
    """Hash of a code or token in the form."""
    value = form.get(name, "")
    return _digest(value if tokens.is_shaped(value) else "", state)


def _digest(value: str, state: State) -> str:
    return tokens.digest(value, state.token_key)
