"""OAuth for agents: metadata, client registration, tokens, and the bearer check of `/mcp`.

Only `/mcp` advertises where to get a token: elsewhere, a client with a configured header would
assume that OAuth is the only way in.
"""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl

from msgspec import Meta, Struct

from factbook.api.endpoint import (
    NOTHING_STORED,
    Route,
    authenticate_with,
    note_token_use,
    verify_token,
)
from factbook.audit.trail import AuditEntry, Caller, append_record, audit_writes, make_record
from factbook.auth import tokens
from factbook.auth.oauth import clients, consents, protocol
from factbook.auth.oauth.clients import LONGEST_CLIENT_ID, PUBLIC, Registration, clean_client_name
from factbook.auth.oauth.consents import (
    ACCESS,
    ISSUED_LIFETIMES,
    AccessToken,
    Issuance,
    TokenDigests,
)
from factbook.auth.oauth.protocol import BASIC_SCOPES, OAuthError
from factbook.auth.permissions import add_included
from factbook.auth.tokens import Grant
from factbook.clock import SECOND
from factbook.errors import (
    AuthenticationError,
    FactbookError,
    NotAllowedError,
    NotFoundError,
    TooManyRequestsError,
    UnavailableError,
    UnsupportedMediaTypeError,
)
from factbook.http.context import State
from factbook.http.pipeline import message_for_client, render_protocol_error
from factbook.http.requests import Reply, Request, get_client_address, get_own_address, reply
from factbook.storage import Transaction

_NOWHERE = "OAuth is not offered here."
_LARGEST: Final = 16 * 1024
_CREATED: Final = 201
_MOST_FIELDS: Final = 50
_FORM: Final = b"application/x-www-form-urlencoded"
_VERIFIER: Final = range(43, 129)
_LONGEST_ADDRESS: Final = 2_000


async def get_resource_metadata(request: Request, state: State) -> Reply:
    """Metadata of the protected resource: which authorization server issues tokens for it."""
    if not state.oauth.enabled:
        raise NotFoundError(_NOWHERE)
    server = get_own_address(request, state.settings)
    return reply(
        {
            "resource": protocol.build_resource(server),
            "resource_name": "Factbook",
            "authorization_servers": [state.oauth.issuer or protocol.build_issuer(server)],
            "bearer_methods_supported": ["header"],
            "scopes_supported": list(BASIC_SCOPES),
        }
    )


async def get_server_metadata(request: Request, state: State) -> Reply:
    """Metadata of the authorization server."""
    require_token_issuing(state)
    server = get_own_address(request, state.settings)
    metadata: dict[str, Any] = {
        "issuer": protocol.build_issuer(server),
        "authorization_endpoint": f"{server}{protocol.AUTHORIZE_PATH}",
        "token_endpoint": f"{server}{protocol.TOKEN_PATH}",
        "revocation_endpoint": f"{server}{protocol.REVOKE_PATH}",
        # Some hosts request all of these; they request more when a tool needs it.
        "scopes_supported": list(BASIC_SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": [PUBLIC],
        "revocation_endpoint_auth_methods_supported": [PUBLIC],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }
    if state.oauth.registration:
        metadata["registration_endpoint"] = f"{server}{protocol.REGISTER_PATH}"
    return reply(metadata)


def require_token_issuing(state: State) -> None:
    """Raise NotFoundError if this service doesn't issue tokens."""
    if not state.oauth.issues:
        raise NotFoundError(_NOWHERE)


class NewClient(Struct):
    """Used members of what a client says about itself."""

    redirect_uris: Annotated[tuple[str, ...], Meta(min_length=1, max_length=10)]
    client_name: Annotated[str, Meta(max_length=500)] | None = None


async def register_client(request: Request, state: State) -> Reply:
    """Register a client under a new id; it gets no secret."""
    require_token_issuing(state)
    if not state.oauth.registration:
        raise NotFoundError("Clients cannot register themselves here.")
    address = get_client_address(request.scope, state.proxies)
    if seconds := state.registrations.take(address):
        raise TooManyRequestsError(
            "Too many clients have registered from this address.", retry_after=seconds
        )
    given: NewClient = await request.json(NewClient, _LARGEST)
    if not all(map(clients.is_acceptable_redirect, given.redirect_uris)):
        raise OAuthError(
            "redirect_uris have to begin with https://, with http:// and a loopback address, or "
            "with a scheme of the program's own, such as com.example.app:/callback.",
            code="invalid_redirect_uri",
        )
    name, now = clean_client_name(given.client_name) or "A client without a name", state.clock()

    def about(made: Registration) -> AuditEntry:
        hosts = sorted(set(map(clients.extract_redirect_host, made.redirect_uris)))
        return AuditEntry("client.register", made.id, {"name": name, "hosts": hosts})

    write = audit_writes(state.database, Caller("", now, address), about, _CREATED)
    if state.registration_records.take(""):
        # Anybody can register, so the audit could grow without limit.
        state.metrics.left_out_of_audit(1)
        write = state.database.write
    made = await write(lambda tx: clients.store_registration(tx, name, given.redirect_uris, now))
    return reply(
        {
            "client_id": made.id,
            "client_id_issued_at": now // SECOND,
            "client_name": made.name,
            "redirect_uris": made.redirect_uris,
            "token_endpoint_auth_method": PUBLIC,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
        },
        _CREATED,
        cache_control="no-store",
    )


async def issue_oauth_token(request: Request, state: State) -> Reply:
    """Exchange a code or a refresh token for an access token and a new refresh token."""
    require_token_issuing(state)
    form = await _read_form(request)
    server = get_own_address(request, state.settings)
    own_resource = protocol.build_resource(server)
    resource = form.get("resource", own_resource)
    if len(resource) > _LONGEST_ADDRESS or not protocol.names_resource(resource, server):
        raise OAuthError(f"resource has to be {own_resource}.", code="invalid_target")
    access, refresh = tokens.generate_token(), tokens.generate_token()
    new = TokenDigests(_hash_secret(access, state), _hash_secret(refresh, state))
    kind = form.get("grant_type", "")
    if kind == "authorization_code":
        digest, work = _hash_form_secret(form, "code", state), _exchange_code(form, new, state)
    elif kind == "refresh_token":
        digest, work = (
            _hash_form_secret(form, "refresh_token", state),
            _refresh_token(form, new, state),
        )
    else:
        raise OAuthError(
            "grant_type has to be authorization_code or refresh_token.",
            code="unsupported_grant_type",
        )
    done = await _finish_issuance(request, state, digest, work)
    return reply(
        {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": ISSUED_LIFETIMES[ACCESS] // SECOND,
            "refresh_token": refresh,
            "scope": protocol.format_scope(done.permissions),
        },
        cache_control="no-store",
    )


async def revoke_oauth_token(request: Request, state: State) -> Reply:
    """Revoke a token; the answer is the same for a token that doesn't exist."""
    require_token_issuing(state)
    form = await _read_form(request)
    token, client = _hash_form_secret(form, "token", state), _read_client_id(form)
    if await _is_issued_here(token, state):
        await _finish_issuance(
            request, state, token, lambda tx: consents.revoke_issued_token(tx, token, client)
        )
    return reply({}, cache_control="no-store")


def render_oauth_error(error: FactbookError, request: Request) -> Reply:
    """Render an error as in RFC 6749, section 5.2."""
    message = message_for_client(error, request)
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


def _exchange_code(
    form: dict[str, str], new: TokenDigests, state: State
) -> Callable[[Transaction], Issuance]:
    verifier = form.get("code_verifier", "")
    if len(verifier) not in _VERIFIER:
        raise OAuthError("code_verifier has to have 43 to 128 characters.", code="invalid_grant")
    code, client, now = _hash_form_secret(form, "code", state), _read_client_id(form), state.clock()
    redirect_uri = form.get("redirect_uri", "")
    return lambda transaction: consents.exchange_code(
        transaction,
        code=code,
        client=client,
        redirect_uri=redirect_uri,
        verifier=verifier,
        new=new,
        now=now,
    )


def _refresh_token(
    form: dict[str, str], new: TokenDigests, state: State
) -> Callable[[Transaction], Issuance]:
    token, client, now = (
        _hash_form_secret(form, "refresh_token", state),
        _read_client_id(form),
        state.clock(),
    )
    scope = protocol.list_named_permissions(form.get("scope", "")[: protocol.LONGEST_SCOPE])
    return lambda transaction: consents.refresh_tokens(
        transaction, token=token, client=client, scope=scope, new=new, now=now
    )


async def _finish_issuance(
    request: Request, state: State, digest: str, work: Callable[[Transaction], Issuance]
) -> Issuance:
    """Run a token request; records it if it ended a consent. Raises OAuthError."""
    address = get_client_address(request.scope, state.proxies)
    if await _is_issued_here(digest, state):
        # The owner is only known once the token is found.
        done = await state.database.write(
            lambda tx: _record_issuance(tx, work(tx), address, state.clock())
        )
    else:
        done = consents.UNKNOWN_TOKEN
    if done.error is None:
        return done
    # Only failures count, so a good token is never refused because of others at its address.
    if seconds := state.failures.take(address):
        raise TooManyRequestsError(
            "Too many failed requests from this address.", retry_after=seconds
        )
    raise done.error


async def _is_issued_here(digest: str, state: State) -> bool:
    """True if this service issued the token; fake tokens from anybody never take the write lock."""
    state.database.refresh()
    return await consents.is_issued(state.database, digest)


def _record_issuance(transaction: Transaction, done: Issuance, address: str, now: int) -> Issuance:
    if done.consent is not None and done.ended:
        detail = {"client": done.consent.client, "why": done.ended}
        entry = AuditEntry("consent.revoke", done.consent.id, detail)
        caller = Caller(done.consent.person, now, address)
        append_record(transaction, make_record(caller, entry, status=HTTPStatus.OK))
    return done


async def _read_form(request: Request) -> dict[str, str]:
    """Read form fields. Raises OAuthError, UnsupportedMediaTypeError, PayloadTooLargeError."""
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


def _read_client_id(form: dict[str, str]) -> str:
    client = form.get("client_id", "")
    if not 1 <= len(client) <= LONGEST_CLIENT_ID:
        raise OAuthError("client_id has to say which client it is.", code="invalid_client")
    return client


def _hash_form_secret(form: dict[str, str], name: str, state: State) -> str:
    value = form.get(name, "")
    return _hash_secret(value if tokens.is_token_shaped(value) else "", state)


def _hash_secret(value: str, state: State) -> str:
    return tokens.hash_token(value, state.token_key)


async def authenticate_at_mcp(request: Request, state: State) -> Grant:
    """Authenticate at `/mcp`, with OAuth tokens too; raises as `authenticate_with` does."""
    if state.oauth.enabled:
        server = get_own_address(request, state.settings)
        request.resource_metadata = f"{server}{protocol.RESOURCE_METADATA_PATH}"
    return await authenticate_with(request, state, _verify_mcp_token)


def render_mcp_error(error: FactbookError, request: Request) -> Reply:
    """Render an error for MCP over HTTP, with the URL to get a token (RFC 9728, section 5)."""
    reply = render_protocol_error(error, request)
    challenge = _build_challenge(error, request)
    if not challenge:
        return reply
    return reply._replace(headers={**reply.headers, "www-authenticate": challenge})


def _build_challenge(error: FactbookError, request: Request) -> str:
    if not request.resource_metadata:
        return ""
    if isinstance(error, AuthenticationError):
        scope = frozenset(protocol.BASIC_SCOPES)
    elif isinstance(error, NotAllowedError) and (
        more := _list_grantable_permissions(error, request)
    ):
        scope = more
    else:
        return ""
    challenge = error.headers()["www-authenticate"].partition(", scope=")[0]
    return (
        f'{challenge}, scope="{protocol.format_scope(scope)}", '
        f'resource_metadata="{request.resource_metadata}"'
    )


def _list_grantable_permissions(error: NotAllowedError, request: Request) -> frozenset[str]:
    """List the permissions to request for a retry; empty if the person can't grant them."""
    token = request.token
    if token is None or token.grantable is None or not error.missing:
        return frozenset()
    wanted = token.permissions.union(error.missing)
    return wanted if wanted <= token.grantable & frozenset(protocol.SCOPES) else frozenset()


async def _verify_mcp_token(request: Request, state: State, value: str) -> Grant:
    if state.company is not None and not tokens.is_token_shaped(value):
        resource = protocol.build_resource(get_own_address(request, state.settings))
        return await state.company.verified(value, resource, state.database, state.token_key)
    try:
        return await verify_token(request, state, value)
    except AuthenticationError as error:
        # A `token_id` means an expired or revoked API token.
        if request.token_id or not state.oauth.issues or not tokens.is_token_shaped(value):
            raise
        unknown = error
    digest = tokens.hash_token(value, state.token_key)
    token = await consents.find_access_token(state.database, digest)
    if token is None:
        raise unknown
    _check_access_token(token, request, state)
    now, id_ = state.clock(), token.consent
    if token.last_used_at is None or not tokens.is_use_noted(token.last_used_at, now):
        note_token_use(
            state, id_, now, lambda transaction: consents.record_consent_use(transaction, id_, now)
        )
    return Grant(
        id_,
        token.person,
        add_included(token.permissions),
        token.expires_at,
        token.last_used_at,
        None,
        add_included(token.grantable),
    )


def _check_access_token(found: AccessToken, request: Request, state: State) -> None:
    """Raise AuthenticationError if the token has expired or is for another resource."""
    request.token_id = found.consent
    if found.expires_at <= state.clock():
        raise AuthenticationError("The token has expired.", token_sent=True)
    if found.audience != protocol.build_resource(get_own_address(request, state.settings)):
        raise AuthenticationError("The token is for another address.", token_sent=True)
    if not found.permissions:
        raise AuthenticationError("The token's person may no longer do this.", token_sent=True)


OAUTH_ROUTES: Sequence[Route] = (
    Route(
        "GET", protocol.RESOURCE_METADATA_PATH, get_resource_metadata, None, None, described=False
    ),
    Route("GET", protocol.SERVER_METADATA_PATH, get_server_metadata, None, None, described=False),
    *(
        Route(
            "POST",
            path,
            handler,
            None,
            None,
            described=False,
            errors=render_oauth_error,
            reading=NOTHING_STORED,
            signed=True,
        )
        for path, handler in (
            (protocol.TOKEN_PATH, issue_oauth_token),
            (protocol.REVOKE_PATH, revoke_oauth_token),
            (protocol.REGISTER_PATH, register_client),
        )
    ),
)
