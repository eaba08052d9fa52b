"""OAuth clients: configured in the settings, self-registered, or described by a document.

The URL of a client metadata document is the client's id. Anybody who asks for consent can choose
the URL, so the fetch is guarded like every outgoing call, with tighter limits: a small answer
within seconds, from a public address, without redirects.

Clients register themselves by RFC 7591 and are kept while they have consents. Authorization
requests are fully checked before a person sees them.
"""

import asyncio
import re
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Collection, Mapping, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, Protocol
from urllib.parse import urlencode, urlsplit

import can_ada
import msgspec
from msgspec import Meta

from factbook import invisible
from factbook.auth.oauth import protocol
from factbook.auth.oauth.protocol import OAuthError
from factbook.auth.oidc.identity import is_secure_url
from factbook.clock import DAY, HOUR, MINUTE, Clock
from factbook.errors import ConfigurationError, ConflictError, UnavailableError
from factbook.outbound.outcomes import HostReply
from factbook.settings import Settings
from factbook.settings.option_tables import about, read_option_table
from factbook.storage import Database, Transaction

if TYPE_CHECKING:
    from factbook.outbound.network import Network

LONGEST_REDIRECT: Final = 500
# Printable ASCII, except the backslash, which browsers treat as a slash.
_PLAIN_ASCII: Final = re.compile(r"[!-\[\]-~]+")
# `cursor://…` or `com.example.app:/…`, but not `localhost:8080/…`, which lacks http://.
_PRIVATE_SCHEME: Final = re.compile(
    r"([a-z][a-z0-9+-]*(?=://)|[a-z][a-z0-9+-]*(?:\.[a-z0-9-]+)+):/+[^/?]"
)
# Schemes that browsers and operating systems handle themselves.
_TAKEN_SCHEMES: Final = (
    "about|afp|android.*|apple.*|app|blob|brave.*|callto|chrome.*|cid|content|data|dav|edge.*|"
    "facetime.*|feed|file|filesystem|ftps?|git|gopher|hcp|help|https?|imap|intent|irc|itms.*|jar|"
    "javascript|jnlps?|ldaps?|livescript|mailto|market|mhtml|microsoft.*|mid|mk|mocha|moz-.*|"
    "ms-.*|news|nfs|nntp|opera.*|res|resource|rlogin|rsync|rtsp|safari.*|search.*|sftp|shell|"
    "sips?|sms.*|smb|ssh|tel|telnet|tftp|unc|url|urn|vbs|vbscript|view-.*|vnc|web.*|windows.*|"
    "wss?|wyciwyg|x-apple.*|x-man-page|xmpp"
)


def is_acceptable_redirect(uri: str) -> bool:
    """True for an https URL, or a URL of a program on the person's machine."""
    parsed = _parse_redirect(uri)
    if parsed is None or "#" in uri or "@" in urlsplit(uri).netloc:
        return False
    return parsed.protocol == "https:" or is_loopback_redirect(uri) or is_private_use_redirect(uri)


def is_private_use_redirect(uri: str) -> bool:
    """True for a URL with a private-use scheme (RFC 8252, section 7.1)."""
    found = _PRIVATE_SCHEME.match(uri)
    if found is None or not _PLAIN_ASCII.fullmatch(uri) or len(uri) > LONGEST_REDIRECT:
        return False
    return re.fullmatch(_TAKEN_SCHEMES, found[1]) is None


def is_loopback_redirect(uri: str) -> bool:
    """True for a plain http URL on the loopback interface (RFC 8252, section 7.3)."""
    parsed = _parse_redirect(uri)
    if parsed is None or parsed.protocol != "http:":
        return False
    host = parsed.hostname
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def matches_redirect(registered: str, asked: str) -> bool:
    """True if both URLs are equal, ignoring the port of loopback URLs.

    Programs on the person's machine use any free port (RFC 8252, section 7.3).
    """
    if registered == asked:
        return True
    if not (is_loopback_redirect(registered) and is_loopback_redirect(asked)):
        return False
    return _remove_port(registered) == _remove_port(asked)


def extract_redirect_host(uri: str) -> str:
    """Host that the answer goes to, for display; includes a private-use scheme."""
    parsed = _parse_redirect(uri)
    if parsed is None:
        return ""
    if is_private_use_redirect(uri):
        return f"{parsed.protocol}//{parsed.host}" if parsed.host else parsed.protocol
    return parsed.host


def extract_redirect_origin(uri: str) -> str:
    """Origin of a redirect URL; empty if the URL is invalid."""
    parsed = _parse_redirect(uri)
    return parsed.origin if parsed else ""


def build_answer_address(uri: str, **values: str) -> str:
    """Add parameters to the query of a URL; empty values are left out."""
    query = urlencode({name: value for name, value in values.items() if value})
    return f"{uri}{'&' if '?' in uri else '?'}{query}"


def _parse_redirect(uri: str) -> can_ada.URL | None:
    """Parse a URL as browsers do; None unless all parsers agree on its host."""
    if len(uri) > LONGEST_REDIRECT or not _PLAIN_ASCII.fullmatch(uri):
        return None
    try:
        parsed, written = can_ada.parse(uri), urlsplit(uri).hostname
    except ValueError:
        return None
    if is_private_use_redirect(uri):
        return parsed
    # %65vil.example, 127.1 and 0x7f000001 look like different hosts than they are.
    return parsed if written and written == parsed.hostname.strip("[]") else None


def _remove_port(uri: str) -> tuple[str | None, str, str]:
    # Browsers request a slash if the path is empty (RFC 3986, section 6.2.3).
    parts = urlsplit(uri)
    return parts.hostname, parts.path or "/", parts.query


MOST_SECONDS: Final = 5.0
MOST_BYTES: Final = 64 * 1024
_MOST_CACHED: Final = 200
_MOST_AT_ONCE: Final = 4
# Includes running fetches: each waiting request occupies a slot of the whole service.
_MOST_WAITING: Final = 20
_LATER: Final = 5  # seconds
_LONGEST_DOCUMENT_ADDRESS: Final = 500
_LONGEST_CLIENT_NAME: Final = 100
# Authentication method of clients without a secret.
PUBLIC: Final = "none"
_HEADERS: Final[Mapping[str, str]] = {"accept": "application/json"}


class ClientDocument(msgspec.Struct, frozen=True):
    """Used members of a document (RFC 7591, and the draft of OAuth for client ID metadata)."""

    client_id: str
    redirect_uris: Annotated[tuple[str, ...], Meta(min_length=1, max_length=50)]
    client_name: str | None = None
    token_endpoint_auth_method: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    client_secret: Any = None

    @property
    def may_be_public(self) -> bool:
        """True if the client can work without authentication, even if it prefers to have some."""
        method = self.token_endpoint_auth_method or PUBLIC
        return PUBLIC in {method, *(self.token_endpoint_auth_methods_supported or ())}


class FetchDocument(Protocol):
    """Fetches a document without following redirects; never raises."""

    def __call__(self, url: str, headers: Mapping[str, str]) -> Awaitable[HostReply]:
        """Make the call; returns the host's reply or the reason for its absence."""


class GuardedDocumentFetch:
    """Fetches documents within the settings for outgoing calls, with a connection per call."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._network: Network | None = None

    async def __call__(self, url: str, headers: Mapping[str, str]) -> HostReply:
        """Make the call; returns the host's reply or the reason for its absence."""
        if self._network is None:
            # Slow to import, and unused until a client asks for consent.
            from factbook.outbound.network import Network  # noqa: PLC0415

            self._network = Network(self._settings)
        try:
            sender = self._network.sender(
                extract_redirect_origin(url), seconds=MOST_SECONDS, most_bytes=MOST_BYTES
            )
        except ConfigurationError as error:
            return HostReply(0, failure=error.message)
        try:
            return await sender.send("GET", url, headers)
        finally:
            await sender.aclose()


class ClientDocuments:
    """Client documents, cached for an hour; errors are cached for a minute."""

    def __init__(self, fetch: FetchDocument, clock: Clock, hosts: Collection[str] = ()) -> None:
        self._fetch = fetch
        self._clock = clock
        self._hosts = frozenset(hosts)
        self._kept: OrderedDict[str, tuple[int, ClientDocument | OAuthError]] = OrderedDict()
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)
        self._waiting = 0

    async def get(self, client_id: str) -> ClientDocument:
        """Get the document at this URL.

        Raises OAuthError with a message for the person, and UnavailableError if too many clients
        ask at once.
        """
        if not is_document_address(client_id):
            raise _make_client_error("The client's id is not the address of a document about it.")
        if self._hosts and extract_redirect_host(client_id) not in self._hosts:
            raise _make_client_error(
                f"Clients of {extract_redirect_host(client_id)} are not accepted here; "
                "the setting client_hosts names those that are."
            )
        document = self._remembered(client_id) or await self._in_turn(client_id)
        if isinstance(document, OAuthError):
            raise document
        return document

    async def _in_turn(self, client_id: str) -> ClientDocument | OAuthError:
        if self._waiting >= _MOST_WAITING:
            raise UnavailableError("Too many clients ask for consent at once.", retry_after=_LATER)
        self._waiting += 1
        try:
            async with self._turns:
                # Another request may have fetched this document in the meantime.
                document = self._remembered(client_id)
                if document is None:
                    reply = await self._fetch(client_id, _HEADERS)
                    try:
                        document = decode_client_document(reply, client_id)
                    except OAuthError as error:
                        document = error
        finally:
            self._waiting -= 1
        self._kept[client_id] = self._clock(), document
        self._kept.move_to_end(client_id)
        if len(self._kept) > _MOST_CACHED:
            self._kept.popitem(last=False)
        return document

    def _remembered(self, client_id: str) -> ClientDocument | OAuthError | None:
        if client_id not in self._kept:
            return None
        since, document = self._kept[client_id]
        lifetime = MINUTE if isinstance(document, OAuthError) else HOUR
        return document if 0 <= self._clock() - since < lifetime else None


def is_document_address(client_id: str) -> bool:
    """True for a valid document URL: https, with a path, and unambiguous."""
    if len(client_id) > _LONGEST_DOCUMENT_ADDRESS or not client_id.startswith("https://"):
        return False
    if not is_acceptable_redirect(client_id):
        return False
    path = urlsplit(client_id).path
    return path not in {"", "/"} and not {".", ".."} & set(path.split("/"))


def decode_client_document(reply: HostReply, client_id: str) -> ClientDocument:
    """Decode the document in a reply. Raises OAuthError, which quotes nothing from the host."""
    host = extract_redirect_host(client_id)
    if reply.failure:
        raise _make_client_error(
            f"What {host} says about the client did not arrive: {reply.failure}."
        )
    if reply.status != 200:
        raise _make_client_error(
            f"What {host} says about the client did not arrive: it answered {reply.status}."
        )
    try:
        found = msgspec.json.decode(reply.body, type=ClientDocument)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _make_client_error(f"What {host} says about the client cannot be read.") from None
    if found.client_id != client_id:
        raise _make_client_error(f"What {host} says is about another client.")
    if not found.may_be_public or found.client_secret is not None:
        raise _make_client_error(
            "The client wants to prove who it is in a way that is not supported here."
        )
    if not all(map(is_acceptable_redirect, found.redirect_uris)):
        raise _make_client_error(
            "The client has an address for answers that is neither https, nor loopback, nor of a "
            "scheme of its own."
        )
    return found


def clean_client_name(name: str | None) -> str:
    """Clean a client's self-chosen name for display: one short line without hidden text."""
    text = invisible.without(name or "")
    visible = "".join(character for character in text if character.isprintable())
    return " ".join(visible.split())[:_LONGEST_CLIENT_NAME]


def _make_client_error(message: str) -> OAuthError:
    return OAuthError(message, code="invalid_client")


MOST_CLIENTS: Final = 10_000
# Time after which an unused registration is deleted.
_UNUSED_LIFETIME: Final = DAY
# Time after its last consent at which a used registration is deleted.
_IDLE_LIFETIME: Final = 90 * DAY


class Registration(NamedTuple):
    """A client that registered itself with a name of its choice."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]


def store_registration(
    transaction: Transaction, name: str, redirect_uris: tuple[str, ...], now: int
) -> Registration:
    """Store a new client; if there are too many, it replaces the oldest unused one.

    Raises ConflictError if all are in use.
    """
    transaction.lock("oauth clients")
    [count] = transaction.one("SELECT count(*) FROM oauth_clients") or (0,)
    if count >= MOST_CLIENTS and not _delete_oldest_registrations(
        transaction, count - MOST_CLIENTS + 1
    ):
        raise ConflictError(
            f"{MOST_CLIENTS} clients that registered are in use. An administrator can name further "
            "ones in the setting oauth.clients."
        )
    made = Registration(str(uuid.uuid4()), name, redirect_uris)
    transaction.run(
        "INSERT INTO oauth_clients (id, name, redirect_uris, created_at) VALUES (?, ?, ?, ?)",
        (made.id, name, msgspec.json.encode(redirect_uris).decode(), now),
    )
    return made


def _delete_oldest_registrations(transaction: Transaction, number: int) -> int:
    """Delete the oldest clients without consents; returns their number."""
    return transaction.run(
        "DELETE FROM oauth_clients WHERE id IN (SELECT id FROM oauth_clients "
        "WHERE used_at IS NULL AND NOT EXISTS "
        "(SELECT 1 FROM oauth_consents c WHERE c.client = oauth_clients.id) "
        "ORDER BY created_at, id LIMIT ?)",
        (number,),
    )


async def find_registration(database: Database, id_: str) -> Registration | None:
    """Find a registered client by id."""
    row = await database.one(
        "SELECT id, name, redirect_uris FROM oauth_clients WHERE id = ?", (id_,)
    )
    if row is None:
        return None
    return Registration(row[0], row[1], msgspec.json.decode(row[2], type=tuple[str, ...]))


def record_registration_use(transaction: Transaction, id_: str, now: int) -> None:
    """Record that a person gave the client consent."""
    transaction.run("UPDATE oauth_clients SET used_at = ? WHERE id = ?", (now, id_))


def delete_unused_registrations(transaction: Transaction, now: int) -> int:
    """Delete clients without current consents; returns their number."""
    return transaction.run(
        "DELETE FROM oauth_clients WHERE ((used_at IS NULL AND created_at <= ?) OR used_at <= ?) "
        "AND NOT EXISTS (SELECT 1 FROM oauth_consents c WHERE c.client = oauth_clients.id)",
        (now - _UNUSED_LIFETIME, now - _IDLE_LIFETIME),
    )


# Id of a configured client, which can't be confused with a URL or a registration.
_CLIENT_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,99}")
_CLIENT_HOST: Final = re.compile(r"[a-z0-9.-]+(:\d{1,5})?")


class OAuthOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the table. Raises ConfigurationError for invalid ones."""

    enabled: Annotated[
        bool, about("Offer OAuth at `/mcp`; without it, only tokens made by hand are accepted.")
    ] = True
    clients: Annotated[
        dict[str, list[str]],
        about(
            "Clients that are known beforehand: the id of each, and the addresses that it may be "
            "answered at."
        ),
    ] = {}
    client_hosts: Annotated[
        list[str],
        about(
            "Hosts whose client metadata documents are accepted, e.g. `claude.ai`. Empty: any "
            "public host."
        ),
    ] = []
    registration: Annotated[
        bool,
        about(
            "Let clients register themselves (RFC 7591). Only for clients that can do nothing "
            "else: anybody can register under any name."
        ),
    ] = False
    issuer: Annotated[
        str,
        about(
            "Address of an authorization server of your own, whose tokens are accepted in place of "
            "those that this service would issue, e.g. `https://id.example.com`."
        ),
    ] = ""
    audience: Annotated[
        str,
        about("Audience that tokens of `issuer` have to name. Empty: the address of `/mcp`."),
    ] = ""
    name_claim: Annotated[
        str,
        about(
            "Claim in tokens of `issuer` with what the provider of `[openid]` calls a person who "
            "signs in there, in full. Empty: people are known by their subject alone."
        ),
    ] = ""
    permissions: Annotated[
        tuple[str, ...],
        about("Permissions of a token of `issuer` whose scopes name none of this service."),
    ] = protocol.BASIC_SCOPES

    def __post_init__(self) -> None:
        if self.issuer and not is_secure_url(self.issuer):
            raise ConfigurationError("issuer has to be like https://host/path")
        if unknown := sorted(set(self.permissions) - set(protocol.SCOPES)):
            raise ConfigurationError(f"permissions cannot have {', '.join(unknown)} among them")
        for client, uris in self.clients.items():
            if not _CLIENT_ID.fullmatch(client):
                raise ConfigurationError("clients: an id has letters, digits and . _ ~ -")
            if not uris or not all(map(is_acceptable_redirect, uris)):
                raise ConfigurationError(
                    f"clients: {client} needs addresses that begin with https://, with http:// "
                    "and a loopback address, or with a scheme of the program's own"
                )
        if not all(map(_CLIENT_HOST.fullmatch, self.client_hosts)):
            raise ConfigurationError("client_hosts has to have names of hosts")

    @property
    def issues(self) -> bool:
        """True if this service issues tokens itself."""
        return self.enabled and not self.issuer


def make_oauth_options(table: Mapping[str, Any]) -> OAuthOptions:
    """Read options from the settings. Raises ConfigurationError naming the option, no value."""
    return read_option_table("oauth", "oauth", table, OAuthOptions)


ClientOrigin = Literal["settings", "registration", "document"]

LONGEST_CLIENT_ID: Final = 500


class OAuthClient(NamedTuple):
    """A client: its display name, its redirect URLs, and its origin."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    known: ClientOrigin

    def may_be_answered_at(self, uri: str) -> bool:
        """True if the URL matches one of the client's redirect URLs."""
        return any(matches_redirect(registered, uri) for registered in self.redirect_uris)

    def is_trusted(self, options: OAuthOptions) -> bool:
        """True if the settings name the client or the host of its document."""
        return self.known == "settings" or (self.known == "document" and bool(options.client_hosts))


async def find_client(
    id_: str, options: OAuthOptions, database: Database, documents: ClientDocuments
) -> OAuthClient:
    """Find a client by id. Raises OAuthError with a message for the person."""
    if not id_ or len(id_) > LONGEST_CLIENT_ID:
        raise OAuthError("The client does not say which one it is.", code="invalid_client")
    if (uris := options.clients.get(id_)) is not None:
        return OAuthClient(id_, id_, tuple(uris), "settings")
    if id_.startswith("https://"):
        document = await documents.get(id_)
        name = clean_client_name(document.client_name) or extract_redirect_host(id_)
        return OAuthClient(id_, name, document.redirect_uris, "document")
    found = await find_registration(database, id_) if options.registration else None
    if found is None:
        raise OAuthError(
            "The client is not known here. Remove this server from it, and add the server again.",
            code="invalid_client",
        )
    return OAuthClient(id_, found.name, found.redirect_uris, "registration")


PARAMETERS: Final = (
    *("response_type", "client_id", "redirect_uri", "scope", "state", "resource"),
    *("code_challenge", "code_challenge_method", "response_mode"),
)
# A cookie keeps the request while the person signs in, and browsers drop cookies above 4 KB.
LONGEST_REQUEST: Final = 2_800
# The hash of S256 (RFC 7636, section 4.2).
_S256_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class AuthorizationRequest(NamedTuple):
    """A valid authorization request, ready for a person's consent."""

    client: OAuthClient
    redirect_uri: str
    permissions: frozenset[str]
    state: str
    challenge: str
    resource: str


def collect_parameters(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Parameters by name. Raises OAuthError for a repeated one (RFC 6749, section 3.1)."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found and name in PARAMETERS:
            raise OAuthError(f"{name} may be given only once.")
        found[name] = value
    return found


def check_answer_address(client: OAuthClient, given: Mapping[str, str]) -> str:
    """Return the redirect URL. Raises OAuthError unless it is one of the client's."""
    uri = given.get("redirect_uri", "")
    if not is_acceptable_redirect(uri) or not client.may_be_answered_at(uri):
        raise OAuthError("The address for the answer is not one that the client has named.")
    return uri


def check_authorization_request(
    client: OAuthClient, redirect_uri: str, given: Mapping[str, str], server: str
) -> AuthorizationRequest:
    """Check the parameters of a request; `server` is the address of this service.

    Raises OAuthError with an error code for the client.
    """
    if given.get("response_type") != "code":
        raise OAuthError("response_type has to be code.", code="unsupported_response_type")
    if given.get("response_mode", "query") != "query":
        raise OAuthError("response_mode has to be query.")
    if given.get("code_challenge_method") != "S256":
        raise OAuthError("code_challenge_method has to be S256.")
    challenge = given.get("code_challenge", "")
    if not _S256_CHALLENGE.fullmatch(challenge):
        raise OAuthError("code_challenge has to be the hash of S256.")
    if not protocol.names_resource(given.get("resource", protocol.build_resource(server)), server):
        raise OAuthError(
            f"resource has to be {protocol.build_resource(server)}.", code="invalid_target"
        )
    if len(scope := given.get("scope", "")) > protocol.LONGEST_SCOPE:
        raise OAuthError("scope is too long.", code="invalid_scope")
    resource = protocol.build_resource(server)
    state = given.get("state", "")
    return AuthorizationRequest(
        client, redirect_uri, protocol.list_asked_permissions(scope), state, challenge, resource
    )
