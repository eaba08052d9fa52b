"""Consent: a person who is signed in lets a client of OAuth use the tools, or does not.

Every form carries the whole request again, which is checked again. Nothing leads to a client's
address before somebody has pressed a button: anybody can name an address of their own in a link.
Only a client that the settings trust gets its mistakes at once (RFC 6749, section 4.1.2.1; RFC
9700, section 4.11.2).
"""

from collections.abc import Mapping, Sequence

from factbook.audit.trail import AuditEntry
from factbook.auth import tokens, users
from factbook.auth.oauth import clients, consents, protocol
from factbook.auth.oauth.clients import AuthorizationRequest
from factbook.auth.oauth.consents import Consent
from factbook.auth.oauth.protocol import OAuthError
from factbook.errors import NotAllowedError, NotFoundError
from factbook.http.requests import Reply
from factbook.storage import Transaction
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

_CREATED = 201


async def ask(visit: PageContext) -> Reply:
    """Page that asks the person for consent."""
    _require_offered(visit)
    if len(visit.request.url) > clients.LONGEST_REQUEST:
        return _refused(visit, OAuthError("The request of the client is too long."))
    try:
        given = clients.collect_parameters(visit.request.query)
    except OAuthError as error:
        return _refused(visit, error)
    wish = await _wish(visit, given)
    return _question(visit, wish, given) if isinstance(wish, AuthorizationRequest) else wish


async def decide(visit: PageContext) -> Reply:
    """Let the client do it, or tell it that it may not, and lead the browser back to it."""
    _require_offered(visit)
    given = visit.sent.values()
    wish = await _wish(visit, given)
    if not isinstance(wish, AuthorizationRequest):
        return wish
    if visit.sent.one("decision") != "allow":
        return _gone_back(visit, wish, error="access_denied")
    code = tokens.generate_token()
    await _give(visit, wish, tokens.hash_token(code, visit.state.token_key))
    return _gone_back(visit, wish, code=code)


async def _wish(visit: PageContext, given: Mapping[str, str]) -> AuthorizationRequest | Reply:
    """The request with these parameters, or the page that says what is wrong with it."""
    uri, trusted = "", False
    try:
        client = await clients.find_client(
            given.get("client_id", ""),
            visit.state.oauth,
            visit.state.database,
            visit.site.documents,
        )
        uri = clients.check_answer_address(client, given)
        trusted = client.is_trusted(visit.state.oauth)
        return clients.check_authorization_request(client, uri, given, visit.server)
    except OAuthError as error:
        refused = _refused(visit, error, uri, given.get("state", ""))
        if not trusted:
            return refused
        address = _answer(visit, uri, given.get("state", ""), **_told(error))
        if visit.request.method == "POST":  # a form may not lead to other hosts
            return refused._replace(headers={**refused.headers, **_leading_to(address)})
        headers = {"location": address, "referrer-policy": "no-referrer"}
        return Reply(status=303, headers=headers, content_type=b"text/plain")


async def _give(visit: PageContext, wish: AuthorizationRequest, code: str) -> None:
    ref, now, client = visit.person.ref, visit.now, wish.client

    def work(transaction: Transaction) -> Consent:
        permissions = wish.permissions & (
            users.get_user_permissions(transaction, ref) or frozenset()
        )
        if not permissions:
            raise NotAllowedError("Your role allows nothing of what the client asks for.")
        if client.known == "registration":
            clients.record_registration_use(transaction, client.id, now)
        consent = Consent(
            id="",
            person=ref,
            client=client.id,
            client_name=client.name,
            redirect_uri=wish.redirect_uri,
            audience=wish.resource,
            permissions=permissions,
            created_at=now,
            last_used_at=None,
            ends_at=now,
        )
        return consents.give_consent(transaction, consent, code, wish.challenge)

    def about(made: Consent) -> AuditEntry:
        detail = {
            "client": made.client,
            "name": made.client_name,
            "host": clients.extract_redirect_host(made.redirect_uri),
            "permissions": sorted(made.permissions),
        }
        return AuditEntry("consent.give", made.id, detail)

    await visit.writing(about, _CREATED)(work)


def _question(visit: PageContext, wish: AuthorizationRequest, given: Mapping[str, str]) -> Reply:
    held = visit.person.permissions
    asked = [
        (name, words) for name, words in protocol.SCOPE_WORDS.items() if name in wish.permissions
    ]
    return visit.page(
        "consent.html",
        client=wish.client,
        client_host=clients.extract_redirect_host(wish.client.id)
        if wish.client.known == "document"
        else "",
        host=clients.extract_redirect_host(wish.redirect_uri),
        is_local=clients.is_loopback_redirect(wish.redirect_uri)
        or clients.is_private_use_redirect(wish.redirect_uri),
        resource=wish.resource,
        given=[each for each in asked if each[0] in held],
        lacking=[each for each in asked if each[0] not in held],
        fields={name: value for name, value in given.items() if name in clients.PARAMETERS},
        action=protocol.AUTHORIZE_PATH,
    )


def _gone_back(visit: PageContext, wish: AuthorizationRequest, **values: str) -> Reply:
    """Page that leads back to the client, by a header: a form may not lead to other hosts."""
    uri = _answer(visit, wish.redirect_uri, wish.state, **values)
    reply = visit.page(
        "consent-done.html",
        _CREATED if "code" in values else 200,
        allowed="code" in values,
        client=wish.client,
        host=clients.extract_redirect_host(wish.redirect_uri),
        address=uri,
    )
    return reply._replace(headers={**reply.headers, **_leading_to(uri)})


def _leading_to(address: str) -> dict[str, str]:
    return {"refresh": f"0; url={address}", "referrer-policy": "no-referrer"}


def _told(error: OAuthError) -> dict[str, str]:
    return {"error": error.code, "error_description": error.message}


def _refused(visit: PageContext, error: OAuthError, uri: str = "", state: str = "") -> Reply:
    """Page that says what is wrong, with a link back where the address is the client's own."""
    return visit.page(
        "consent-refused.html",
        error.status,
        problem=error.message,
        host=clients.extract_redirect_host(uri) if uri else "",
        address=_answer(visit, uri, state, **_told(error)) if uri else "",
    )


def _answer(visit: PageContext, uri: str, state: str, **values: str) -> str:
    # The issuer, so that a client of several servers knows whose answer it is (RFC 9207).
    issuer = protocol.build_issuer(visit.server)
    return clients.build_answer_address(uri, **values, state=state, iss=issuer)


def _require_offered(visit: PageContext) -> None:
    if not visit.state.oauth.issues:
        raise NotFoundError("OAuth is not offered here.")


CONSENT: Sequence[PageRoute] = (
    PageRoute("GET", protocol.AUTHORIZE_PATH, ask, for_clients=True),
    PageRoute("POST", protocol.AUTHORIZE_PATH, decide, for_clients=True),
)
