"""Requests for pages: cookies, static files, forms, navigation, context, and the pipeline.

Pages are compressed and show parts of their address, so an attacker on the network could guess a
secret in all of them from the lengths of many responses (BREACH). That's why each page masks the
CSRF token of its forms differently.
"""

import asyncio
import base64
import binascii
import gzip
import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from factbook import __version__, invisible
from factbook.asgi import ASGIApp
from factbook.audit.trail import About, AuditEntry, Caller, audit_writes
from factbook.auth import sessions
from factbook.auth.oauth.clients import ClientDocuments, FetchDocument, GuardedDocumentFetch
from factbook.auth.permissions import (
    AUDIT_READ,
    CATALOG_READ,
    CHECK_READ,
    EVENTS_READ,
    OPERATIONS_MANAGE,
    SOURCE_WRITE,
    TITLES,
    TOKEN_MANAGE,
    suffices_when_owned,
)
from factbook.auth.sessions import Session
from factbook.auth.tokens import hash_token, is_use_noted
from factbook.catalog.store import stored_entities
from factbook.clock import MINUTE, SECOND
from factbook.errors import (
    AuthenticationError,
    ConflictError,
    FactbookError,
    InputError,
    NotAllowedError,
    NotFoundError,
    OverloadedError,
    PayloadTooLargeError,
    PreconditionFailedError,
    TooManyRequestsError,
    UnsupportedMediaTypeError,
)
from factbook.http.admission import RateLimit
from factbook.http.context import State
from factbook.http.pipeline import REFUSED, Pipeline, record_refusal
from factbook.http.requests import (
    Reply,
    Request,
    get_client_address,
    get_own_address,
    run_offloaded,
)
from factbook.storage import Write
from factbook.web import charts, formats
from factbook.web.charts import draw_kind_glyph, draw_kind_shape

if TYPE_CHECKING:
    # Heavy to import, and few configure a provider.
    from factbook.auth.oidc.client import OpenID
    from factbook.web.live import ChangeTail


# Browsers reject cookies with this prefix if set without TLS or for other hosts (RFC 6265bis).
_HOST_PREFIX: Final = "__Host-"

SESSION_COOKIE: Final = "factbook"
VISITOR_COOKIE: Final = "factbook-visitor"  # before there is a session
NOTICE_COOKIE: Final = "factbook-notice"
KNOWN_BROWSER_COOKIE: Final = "factbook-known"  # with a suffix for each person who has signed in
ATTEMPT_COOKIE: Final = "factbook-attempt"  # to sign in through a provider
THEME_COOKIE: Final = "factbook-theme"

_MASKED = re.compile("[0-9a-f]{128}", re.ASCII)
_LENGTH = 64

_LARGEST_NUMBER: Final = 2**53  # ids and times are smaller
_LARGEST_PAGE: Final = 10_000


def read_cookie(request: Request, name: str, *, secure: bool) -> str | None:
    """Value of a cookie; None if it was not sent.

    Other programs on the same host may set malformed cookies, so this avoids parsers that reject
    the whole header for one of them. Of several cookies with one name the first counts, which is
    the one for the narrowest path (RFC 6265, section 5.4).
    """
    wanted = _name_cookie(name, secure=secure)
    for pair in (request.header(b"cookie") or "").split(";"):
        found, _, value = pair.strip().partition("=")
        if found == wanted:
            return value
    return None


def make_cookie(name: str, value: str, *, secure: bool, seconds: int | None = None) -> str:
    """Header that sets a cookie, for this many seconds or for the browser session.

    `value` may contain only letters, digits and `-_.=`.
    """
    lasting = "" if seconds is None else f"; Max-Age={seconds}"
    safe = "; Secure" if secure else ""
    full_name = _name_cookie(name, secure=secure)
    return f"{full_name}={value}; Path=/; HttpOnly; SameSite=Lax{lasting}{safe}"


def make_expired_cookie(name: str, *, secure: bool) -> str:
    """Header that deletes a cookie."""
    return make_cookie(name, "", secure=secure, seconds=0)


def pack_cookie_text(text: str) -> str:
    """Encode a text as the value of a cookie."""
    return base64.urlsafe_b64encode(text.encode()).decode()


def unpack_cookie_text(value: str) -> str:
    """Decode a packed cookie value; empty if invalid."""
    try:
        return base64.urlsafe_b64decode(value.encode("ascii", "replace")).decode()
    except (binascii.Error, ValueError):
        return ""


def mask_token(token: str) -> str:
    """Mask a token of 64 hexadecimal digits for a page."""
    mask = secrets.token_bytes(_LENGTH // 2)
    return mask.hex() + _mix_bytes(mask, bytes.fromhex(token)).hex()


def unmask_token(shown: str) -> str:
    """Token from its masked form; empty for an invalid one."""
    if not _MASKED.fullmatch(shown):
        return ""
    return _mix_bytes(bytes.fromhex(shown[:_LENGTH]), bytes.fromhex(shown[_LENGTH:])).hex()


def _name_cookie(name: str, *, secure: bool) -> str:
    return f"{_HOST_PREFIX}{name}" if secure else name


def _mix_bytes(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=True))


_FOREVER = "public, max-age=31536000, immutable"
_FOLDER = files("factbook.web") / "static"


class Asset(NamedTuple):
    """A static file of the pages."""

    name: str
    content_type: bytes
    content: bytes


@cache
def collect_assets() -> dict[str, Asset]:
    """All assets by path."""
    sheets = sorted(
        (one for one in (_FOLDER / "css").iterdir() if one.name.endswith(".css")),
        key=lambda one: one.name,
    )
    found = (
        ("factbook.css", b"text/css; charset=utf-8", b"\n".join(map(_read_asset_file, sheets))),
        (
            "factbook.js",
            b"text/javascript; charset=utf-8",
            _read_asset_file(_FOLDER / "factbook.js"),
        ),
        ("factbook.svg", b"image/svg+xml", _read_asset_file(_FOLDER / "factbook.svg")),
    )
    return {make_asset_path(Asset(*one)): Asset(*one) for one in found}


@cache
def get_asset_url(name: str) -> str:
    """Address of the asset with this name."""
    return next(address for address, asset in collect_assets().items() if asset.name == name)


def make_asset_path(asset: Asset) -> str:
    """Path of an asset."""
    digest = hashlib.blake2b(asset.content, digest_size=6).hexdigest()
    stem, _, ending = asset.name.rpartition(".")
    return f"/static/{stem}-{digest}.{ending}"


def reply_with_asset(address: str) -> Reply:
    """Reply with the asset at this address; raises NotFoundError."""
    asset = collect_assets().get(address)
    if asset is None:
        raise NotFoundError
    headers = {"cache-control": _FOREVER, "x-content-type-options": "nosniff"}
    return Reply(asset.content, headers=headers, content_type=asset.content_type)


def _read_asset_file(resource: object) -> bytes:
    content: bytes = resource.read_bytes()  # type: ignore[attr-defined]
    return content


class Section(NamedTuple):
    """A place in the navigation; `current` while one of its pages is shown."""

    title: str
    path: str
    icon: str
    current: bool


class SectionGroup(NamedTuple):
    """A group of sections, with a title or without."""

    title: str | None
    sections: list[Section]


_MAIN = (
    ("Overview", "/", "overview"),
    ("Catalog", "/catalog", "catalog"),
    ("Sets", "/sets", "sets"),
    ("Scorecards", "/scorecards", "scorecards"),
    ("Checks", "/checks", "checks"),
    ("Exemptions", "/exemptions", "exemptions"),
    ("Data sources", "/data-sources", "sources"),
    ("Connect an agent", "/connect", "connect"),
)
# Each with the permissions it needs; none means that any signed-in person sees it.
_ADMINISTRATION = (
    ("Account", "/administration/account", "account", ()),
    ("People", "/administration/people", "people", (TOKEN_MANAGE,)),
    ("Connections", "/administration/connections", "connections", (SOURCE_WRITE,)),
    ("Webhooks", "/administration/webhooks", "webhooks", (EVENTS_READ, OPERATIONS_MANAGE)),
    (
        "Digests",
        "/administration/digests",
        "digests",
        (CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE),
    ),
    ("Audit", "/administration/audit", "audit", (AUDIT_READ,)),
    ("Status", "/status", "status", (OPERATIONS_MANAGE,)),
)


# Documentation by path prefix; the first match counts.
_HELP = (
    ("/catalog/", "/help/pages#an-entity"),
    ("/catalog", "/help/pages#catalog"),
    ("/sets", "/help/how-to/push"),
    ("/imports", "/help/how-to/import"),
    ("/importers", "/help/how-to/import"),
    ("/scorecards", "/help/how-to/scorecards"),
    ("/checks/", "/help/reference/checks"),
    ("/checks", "/help/pages#checks"),
    ("/exemptions", "/help/how-to/scorecards#exempt-an-entity"),
    ("/data-sources/new", "/help/how-to/define-sources"),
    ("/data-sources", "/help/pages#data-sources"),
    ("/connect/tools", "/help/reference/tools"),
    ("/connect", "/help/how-to/connect"),
    ("/administration/account/api-access", "/help/pages#api-access"),
    ("/administration/account", "/help/how-to/people#local-accounts"),
    ("/administration/people", "/help/how-to/people"),
    ("/administration/connections", "/help/how-to/define-sources#make-a-connection"),
    ("/administration/webhooks", "/help/how-to/events#webhooks"),
    ("/administration/digests", "/help/how-to/scorecards#tell-teams-what-changed"),
    ("/administration/audit", "/help/how-to/people#the-audit"),
    ("/status", "/help/pages#status"),
    ("/oauth", "/help/how-to/sign-in-agents"),
    ("/help", "/help"),
    ("/", "/help/pages"),
)


def find_help(path: str) -> str:
    """Address of the documentation for the page at `path`."""
    return next(address for below, address in _HELP if path.startswith(below))


def list_sections(path: str, may: Callable[..., bool]) -> list[SectionGroup]:
    """Navigation for a person with these permissions, on the page at `path`."""
    main = [Section(*one, current=_is_current_section(path, one[1])) for one in _MAIN]
    administration = [
        Section(title, where, icon, current=_is_current_section(path, where))
        for title, where, icon, needs in _ADMINISTRATION
        if may(*needs)
    ]
    return [SectionGroup(None, main), SectionGroup("Administration", administration)]


def _is_current_section(path: str, section: str) -> bool:
    return path == section or (section != "/" and path.startswith(f"{section}/"))


_LARGEST_FORM = 512 * 1024
_MOST_FIELDS = 1000
_FORM_TYPE = b"application/x-www-form-urlencoded"

CSRF = "csrf"


class Form:
    """Fields of a form as sent."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self._fields = fields

    def one(self, name: str, default: str = "") -> str:
        """Last value of a field, stripped."""
        return self.raw(name, default).strip()

    def raw(self, name: str, default: str = "") -> str:
        """Last value of a field as typed, because blanks in a password count."""
        return dict(self._fields).get(name, default)

    def all(self, name: str) -> list[str]:
        """Every value of a field that may be sent several times, such as checkboxes."""
        return [value for key, value in self._fields if key == name]

    def values(self) -> Mapping[str, str]:
        """Last value of every field except the CSRF token."""
        return {name: value for name, value in self._fields if name != CSRF}


async def read_sent_form(request: Request) -> Form:
    """Form in the body; raises InputError, UnsupportedMediaTypeError, PayloadTooLargeError."""
    type_ = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if type_ != _FORM_TYPE:
        raise UnsupportedMediaTypeError("A form has to be encoded the way a browser encodes it.")
    body = await request.body(_LARGEST_FORM, "a form")
    try:
        text = bytes(body).decode("ascii")
        fields = parse_qsl(
            text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except (UnicodeDecodeError, ValueError):
        raise InputError("The form cannot be read.") from None
    # Browsers end lines with CRLF on every system.
    return Form([(name, value.replace("\r\n", "\n")) for name, value in fields])


T = TypeVar("T")

_NOTICE_SECONDS = 60
# Wrong passwords per minute for one name: from all unknown browsers together, and from each known
# browser. The limit per address is a setting.
_WRONG_PASSWORDS = 10
_AT_ONCE = 4

THEMES = ("system", "light", "dark")


@dataclass(eq=False)
class Site:
    """The service as pages see it; `openid` is None unless a provider is configured.

    `application` is the whole application, including the pages.
    """

    state: State
    application: ASGIApp
    tail: "ChangeTail"
    openid: "OpenID | None" = None
    fetch_document: FetchDocument | None = None
    wrong_passwords: RateLimit = field(init=False)
    known_browsers: RateLimit = field(init=False)
    documents: ClientDocuments = field(init=False)
    hashing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def __post_init__(self) -> None:
        rate = _WRONG_PASSWORDS * SECOND / MINUTE
        self.wrong_passwords = RateLimit(rate, _WRONG_PASSWORDS, self.state.clock)
        self.known_browsers = RateLimit(rate, _WRONG_PASSWORDS, self.state.clock)
        fetch = self.fetch_document or GuardedDocumentFetch(self.state.settings)
        hosts = self.state.oauth.client_hosts
        self.documents = ClientDocuments(fetch, self.state.clock, hosts)

    async def slow(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a password function on a thread, few at a time, as each takes 64 MiB."""
        async with self.hashing:
            return await asyncio.to_thread(function, *arguments)

    @property
    def is_secure(self) -> bool:
        """True if the settings have a public URL with TLS."""
        return (self.state.settings.public_url or "").startswith("https://")


@dataclass
class PageContext:
    """Context of a page's handler."""

    site: Site
    request: Request
    address: str
    session: Session | None
    form_key: str = ""
    form: Form | None = None
    set_cookies: list[str] = field(default_factory=list)
    recorded: bool = False  # the audit has the refusal
    own_only: bool = False  # may write only what the person's groups own

    @property
    def state(self) -> State:
        """The shared state of the service."""
        return self.site.state

    @property
    def person(self) -> Session:
        """Person signed in; pages that need one always have one."""
        assert self.session is not None
        return self.session

    @property
    def sent(self) -> Form:
        """The form; every request that changes something has one."""
        assert self.form is not None
        return self.form

    @property
    def now(self) -> int:
        """Current time, in milliseconds since the epoch."""
        return self.state.clock()

    @property
    def server(self) -> str:
        """Address of this service, from the settings or else from the request."""
        return get_own_address(self.request, self.state.settings)

    def may(self, *permissions: str) -> bool:
        """True if a person is signed in who has all of these permissions."""
        return self.session is not None and self.session.permissions.issuperset(permissions)

    def may_own(self, *permissions: str) -> bool:
        """True if the person lacks some of these, but has them for what their groups own."""
        return not self.may(*permissions) and (
            self.session is not None and suffices_when_owned(self.session.permissions, permissions)
        )

    def writing(
        self, about: AuditEntry | About, status: int = HTTPStatus.SEE_OTHER, actor: str = ""
    ) -> Write:
        """Transaction runner that records the person in the audit, in the same transaction.

        `actor` is the reference of a person who is not signed in yet.
        """
        grant = "" if actor else self.person.grant
        caller = Caller(actor or self.person.ref, self.now, self.address, grant=grant)
        return audit_writes(self.state.database, caller, about, status)

    async def known(self, refs: Iterable[str]) -> frozenset[str]:
        """References among these that are entities; people often have none."""
        return frozenset(
            await stored_entities.read_display_names(self.state.database, list(dict.fromkeys(refs)))
        )

    def require(self, *permissions: str) -> None:
        """Raise NotAllowedError naming the missing permissions."""
        missing = tuple(name for name in permissions if not self.may(name))
        if missing:
            named = " and ".join(f'"{TITLES[name]}"' for name in missing)
            raise NotAllowedError(f"Your account does not have the permission {named}.")

    def query(self, name: str, default: str = "") -> str:
        """Last value of a query parameter, stripped."""
        return (self.request.all(name) or [default])[-1].strip()

    def query_number(
        self, name: str, default: int, *, least: int = 0, most: int = _LARGEST_NUMBER
    ) -> int:
        """Read a whole number from a query parameter; `default` if there is none.

        Raises InputError for anything else, and for a number outside the bounds.
        """
        text = self.query(name)
        if not text:
            return default
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
        if not is_number or not least <= int(text) <= most:
            raise InputError(f"“{name}” in the address must be a number from {least} to {most}.")
        return int(text)

    def page_number(self) -> int:
        """Read the number of the page of a list, from 1; raises InputError as `query_number`."""
        return self.query_number("page", 1, least=1, most=_LARGEST_PAGE)

    def page(self, template: str, status: int = 200, **values: Any) -> Reply:
        """Render a page."""
        theme = self.cookie(THEME_COOKIE)
        shared = {
            "visit": self,
            "csrf": mask_token(self.form_key) if self.form_key else "",
            "now": self.now,
            "theme": theme if theme in THEMES else THEMES[0],
            "notice": self._taken_notice(),
            "navigation": list_sections(self.request.path, self.may) if self.session else [],
            "help": find_help(self.request.path) if self.session else "",
        }
        body = _get_environment().get_template(template).render({**shared, **values})
        return Reply(body.encode(), status, content_type=b"text/html; charset=utf-8")

    def redirect(self, path: str, notice: str | None = None) -> Reply:
        """Redirect to another page of this service, which shows the notice once.

        Raises ValueError for an address that leads elsewhere.
        """
        if not path[:1] == "/" != path[1:2]:
            raise ValueError("A page can only redirect to pages of this service.")
        if notice is not None:
            self.keep_cookie(NOTICE_COOKIE, pack_cookie_text(notice), _NOTICE_SECONDS)
        return Reply(status=303, headers={"location": path}, content_type=b"text/plain")

    def cookie(self, name: str) -> str | None:
        """Value of a cookie of this service."""
        return read_cookie(self.request, name, secure=self.site.is_secure)

    def keep_cookie(self, name: str, value: str, seconds: int | None = None) -> None:
        """Set a cookie with the answer."""
        secure = self.site.is_secure
        self.set_cookies.append(make_cookie(name, value, secure=secure, seconds=seconds))

    def drop_cookie(self, name: str) -> None:
        """Delete a cookie with the answer."""
        self.set_cookies.append(make_expired_cookie(name, secure=self.site.is_secure))

    def _taken_notice(self) -> str | None:
        """One-time notice from the previous page, removed from its cookie."""
        value = self.cookie(NOTICE_COOKIE)
        if not value:
            return None
        self.drop_cookie(NOTICE_COOKIE)
        return unpack_cookie_text(value) or None


def _show_invisible(value: Any) -> Any:
    """Make invisible characters in text visible; markup was checked before."""
    return invisible.marked(value) if type(value) is str else value


@cache
def _get_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("factbook.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_show_invisible,
    )
    environment.filters |= formats.FILTERS | {
        "fact_title": formats.get_fact_title,
        "kind_glyph": draw_kind_glyph,
        "moment": charts.format_moment,
        "kind_shape": draw_kind_shape,
    }
    environment.globals |= {"asset": get_asset_url, "version": __version__}
    return environment


Handler = Callable[[PageContext], Awaitable[Reply]]

OPEN: Final = None  # to everybody, signed in or not
SIGNED_IN: Final[tuple[str, ...]] = ()

# Nothing from elsewhere, nothing inline, in no other site's frame.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
# Keep personal content out of caches.
_PRIVATE = {"cache-control": "no-store"}
_PLAIN_TEXT = b"text/plain; charset=utf-8"
# Names of the errors that refuse a form, by status.
_REFUSED: Final[Mapping[int, str]] = {
    error.status: error.name
    for error in (
        InputError,
        AuthenticationError,
        NotAllowedError,
        ConflictError,
        PreconditionFailedError,
        PayloadTooLargeError,
        TooManyRequestsError,
    )
}
# Bytes of replies: smaller ones fit into one packet uncompressed, larger ones are compressed on a
# thread, to keep the event loop free.
_SMALLEST, _LARGE = 1_400, 256 * 1024
_QUICK, _SMALL = 4, 9
_TLS_ONLY = {"strict-transport-security": "max-age=31536000"}


# A sign-in window opened by a client needs access to the window that opened it.
_OF_OTHERS = {"cross-origin-opener-policy": "unsafe-none"}


class PageRoute(NamedTuple):
    """A method of a path; `needs`: permissions, () for anyone signed in, None for all.

    OAuth clients open `for_clients` pages in a window of their own. `owned` pages also admit people
    who may write only what their groups own; the handler checks `own_only`.
    """

    method: str
    path: str
    handler: Handler
    needs: tuple[str, ...] | None = SIGNED_IN
    for_clients: bool = False
    owned: bool = False


class PageEndpoint(Pipeline[PageRoute, PageContext]):
    """ASGI application for all methods of one path."""

    def __init__(self, pages: Mapping[str, PageRoute], site: Site) -> None:
        path = next(iter(pages.values())).path
        # Log the pattern: some paths are secret, such as an invitation link.
        super().__init__(path, pages, site.state, writing=pages.keys() - {"GET"}, log_path=path)
        self._site = site
        opened = any(page.for_clients for page in pages.values())
        self._headers = {**_HEADERS, **(_OF_OTHERS if opened else {}), **_PRIVATE}

    def begun(self, request: Request) -> PageContext:
        address = get_client_address(request.scope, self.state.proxies)
        return PageContext(self._site, request, address, None)

    def caller(self, visit: PageContext) -> Mapping[str, str]:
        return {} if visit.session is None else {"actor": visit.session.ref}

    async def answer(self, visit: PageContext, page: PageRoute | None) -> Reply:
        if page is None:
            raise self.no_method()
        await _identify_person(visit)
        if page.needs is not None:
            if visit.session is None:
                raise AuthenticationError("Sign in to see this page.")
            visit.own_only = page.owned and visit.may_own(*page.needs)
            if not visit.own_only:
                visit.require(*page.needs)
        if _sends_form(visit.request):
            visit.form = await read_sent_form(visit.request)
            _check_form_token(visit)
        return await self._finished(visit, await page.handler(visit))

    async def refused(self, visit: PageContext, error: FactbookError) -> Reply:
        if isinstance(error, OverloadedError):
            # A page would cost as much as the refused request.
            reply = Reply(error.message.encode(), error.status, error.headers(), _PLAIN_TEXT)
        else:
            reply = _make_refusal_page(visit, self.path, error)
        return await self._finished(visit, reply)

    async def _finished(self, visit: PageContext, reply: Reply) -> Reply:
        _note_refused_form(visit, self.path, reply.status)
        tls = _TLS_ONLY if self._site.is_secure else {}
        headers = {**self._headers, **tls, **reply.headers}
        reply = reply._replace(headers=headers, cookies=tuple(visit.set_cookies))
        return await compress_reply(reply, visit.request)


async def _identify_person(visit: PageContext) -> None:
    """Find the session, and derive the token for the forms of the page."""
    state = visit.state
    value = visit.cookie(SESSION_COOKIE)
    if value:
        visit.session = await _get_live_session(visit, hash_token(value, state.token_key))
        if visit.session is None:
            visit.drop_cookie(SESSION_COOKIE)
    if visit.session is None:
        value = visit.cookie(VISITOR_COOKIE)
        if not value:
            value = sessions.generate_cookie()
            visit.keep_cookie(VISITOR_COOKIE, value)
    visit.form_key = hash_token(f"form {value}", state.token_key)


def _check_form_token(visit: PageContext) -> None:
    """Raise NotAllowedError unless the form carries the token of the person's own page."""
    sent = unmask_token(visit.sent.raw(CSRF))
    if not hmac.compare_digest(sent, visit.form_key):
        raise NotAllowedError(
            "The form has expired, comes from another site, or your browser blocks cookies. "
            "Open the page again and repeat what you did."
        )


async def _get_live_session(visit: PageContext, hash_: str) -> Session | None:
    state, now = visit.state, visit.now
    state.database.refresh()
    found = await sessions.find_session(state.database, hash_)
    if found is None or not found.counts(now):
        return None
    if not (is_use_noted(found.used_at, now) or is_use_noted(state.touched.get(hash_, 0), now)):
        state.touched[hash_] = now
        state.spawn(state.database.write(lambda tx: sessions.record_session_use(tx, hash_, now)))
    return found


def _make_refusal_page(visit: PageContext, path: str, error: FactbookError) -> Reply:
    """Error page, or a redirect to sign in for a person who is not signed in."""
    request = visit.request
    if request.headers.get(b"accept") == b"text/event-stream":
        # An event source would follow a redirect again and again.
        return Reply(error.message.encode(), error.status, error.headers(), _PLAIN_TEXT)
    if isinstance(error, AuthenticationError) and visit.session is None:
        back = "/" if _sends_form(request) else request.url
        if _sends_form(request):
            _note_refused_form(visit, path, error.status)
        return visit.redirect(f"/sign-in?next={quote(back, safe='')}")
    if isinstance(error, NotAllowedError):
        _record_refused_page(visit, path, error.status)
    reply = visit.page("error.html", error.status, error=error)
    return reply._replace(headers={**reply.headers, **error.headers()})


def _note_refused_form(visit: PageContext, path: str, status: int) -> None:
    """Record the refusal of a form, unless already recorded."""
    if status in _REFUSED and _sends_form(visit.request) and not visit.recorded:
        _record_refused_page(visit, path, status)


def _record_refused_page(visit: PageContext, path: str, status: int) -> None:
    visit.recorded = True
    record_refusal(
        visit.state,
        actor=visit.session.ref if visit.session else "",
        address=visit.address,
        action=REFUSED,
        object=path,
        status=status,
        detail={"method": visit.request.method[:20], "error": _REFUSED[status]},
    )


def _sends_form(request: Request) -> bool:
    return request.method not in {"GET", "HEAD"}


async def compress_reply(reply: Reply, request: Request) -> Reply:
    """Reply to a GET, compressed if that makes it smaller and the browser accepts it.

    Replies to forms stay as they are: some of them show a secret.
    """
    body = reply.body
    if request.method != "GET" or not isinstance(body, bytes) or len(body) < _SMALLEST:
        return reply
    headers = {**reply.headers, "vary": "accept-encoding"}
    if b"gzip" not in request.headers.get(b"accept-encoding", b""):
        return reply._replace(headers=headers)
    # Immutable assets are the same for everyone, so they are compressed once.
    is_kept = "immutable" in reply.headers.get("cache-control", "")
    if is_kept:
        smaller = _compress_once(body)
    elif len(body) > _LARGE:
        smaller = await run_offloaded(_compress_quickly, body)
    else:
        smaller = _compress_quickly(body)
    return reply._replace(body=smaller, headers={**headers, "content-encoding": "gzip"})


def _compress_quickly(body: bytes) -> bytes:
    return gzip.compress(body, _QUICK, mtime=0)


@lru_cache(maxsize=16)
def _compress_once(body: bytes) -> bytes:
    return gzip.compress(body, _SMALL, mtime=0)
