"""Registration of clients by themselves (RFC 7591), where a setting allows it."""

from typing import Annotated, Final

from msgspec import Meta, Struct

from factbook.api.oauth.metadata import require_issuing
from factbook.audit import trail
from factbook.audit.trail import AuditEntry, Caller
from factbook.auth.oauth import redirects, registrations
from factbook.auth.oauth.client_documents import PUBLIC, shown_name
from factbook.auth.oauth.refusal import OAuthError
from factbook.auth.oauth.registrations import Registration
from factbook.clock import SECOND
from factbook.errors import NotFoundError, TooManyRequestsError
from factbook.http.context import State
from factbook.http.requests import Reply, Request, client_address, reply

_LARGEST: Final = 16 * 1024
_CREATED: Final = 201


class NewClient(Struct):
    """Used members of what a client says about itself."""

    redirect_uris: Annotated[tuple[str, ...], Meta(min_length=1, max_length=10)]
    client_name: Annotated[str, Meta(max_length=500)] | None = None


async def register(request: Request, state: State) -> Reply:
    """Store a client under a new id; it gets no secret."""
    require_issuing(state)
    if not state.oauth.registration:
        raise NotFoundError("Clients cannot register themselves here.")
    address = client_address(request.scope, state.proxies)
    if seconds := state.registrations.take(address):
        raise TooManyRequestsError(
            "Too many clients have registered from this address.", retry_after=seconds
        )
    given: NewClient = await request.json(NewClient, _LARGEST)
    if not all(map(redirects.is_acceptable, given.redirect_uris)):
        raise OAuthError(
            "redirect_uris have to begin with https://, with http:// and a loopback address, or "
            "with a scheme of the program's own, such as com.example.app:/callback.",
            code="invalid_redirect_uri",
        )
    name, now = shown_name(given.client_name) or "A client without a name", state.clock()

    def about(made: Registration) -> AuditEntry:
        hosts = sorted(set(map(redirects.host, made.redirect_uris)))
        return AuditEntry("client.register", made.id, {"name": name, "hosts": hosts})

    write = trail.writing(state.database, Caller("", now, address), about, _CREATED)
    if state.registration_records.take(""):
        # Anybody can register, so the audit would grow without bound.
        state.metrics.left_out_of_audit(1)
        write = state.database.write
    made = await write(lambda tx: registrations.store(tx, name, given.redirect_uris, now))
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
